-- Ends a wire id and grants its lock in one step to the successor, a waiter of the same process. That is lock
-- cohorting (Dice, Marathe and Shavit 2012). If the successor is over, or the lock cannot be granted, this is an END
-- that announces: the giver never fails for the successor's sake.
--
-- KEYS
--   lock                hash     owner -> hold count
--   channel             channel  where releases are announced
--   tombstone           string   of the giver's wire id
--   successorTombstone  string   exists once the successor's is over
-- ARGV
--   owner               text     the giver, clientId:n
--   successor           text     clientId:n
--   lease               ms       of the successor
--   tombstoneTtl        ms       how long a command may be late
--   publish             text     PUBLISH or SPUBLISH
-- REPLY
--   {heard, found, has}          heard and found as from END; has: 1 if the successor has the lock
-- INCLUDE shared/bury
-- INCLUDE shared/create
-- INCLUDE shared/hear
-- INCLUDE shared/remove_field
-- INCLUDE shared/successor

if not remove_field(lock, owner) then
  local found = bury(tombstone, -redis.call('EXISTS', lock), tombstoneTtl)
  return {0, found, has_lock(lock, successor, lease)}
end
bury(tombstone, 1, tombstoneTtl)
if redis.call('EXISTS', lock, successorTombstone) == 0 and not create(lock, lease, successor, '1') then
  return {0, 1, 1}
end
return {hear(publish, channel, '0'), 1, 0}
