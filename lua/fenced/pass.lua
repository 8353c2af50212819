-- Ends a wire id and grants its lock in one step to the successor, a waiter of the same process, with the next
-- fencing token. That is lock cohorting (Dice, Marathe and Shavit 2012). If the successor is over, or the lock cannot
-- be granted, this is an END that announces: the giver never fails for the successor's sake.
--
-- KEYS
--   lock                hash     owner -> hold count
--   channel             channel  where releases are announced
--   tombstone           string   of the giver's wire id
--   successorTombstone  string   exists once the successor's is over
--   counter             string   the last token; without TTL
-- ARGV
--   owner               text     the giver, clientId:n
--   successor           text     clientId:n
--   lease               ms       of the successor
--   tombstoneTtl        ms       how long a command may be late
--   publish             text     PUBLISH or SPUBLISH
-- REPLY
--   {heard, found, 0}         heard and found as from END; the successor does not have the lock
--   {heard, found, 1, token}  it has
-- INCLUDE shared/bury
-- INCLUDE shared/create
-- INCLUDE shared/hear
-- INCLUDE shared/next_token
-- INCLUDE shared/remove_field
-- INCLUDE shared/successor

if not remove_field(lock, owner) then
  local found = bury(tombstone, -redis.call('EXISTS', lock), tombstoneTtl)
  if has_lock(lock, successor, lease) == 1 then
    return {0, found, 1, redis.call('GET', counter)}
  end
  return {0, found, 0}
end
bury(tombstone, 1, tombstoneTtl)
if redis.call('EXISTS', lock, successorTombstone) == 0 then
  -- A counter that is no number stops the successor's own try, not the release.
  local drawn = pcall(function() next_token(counter) end)
  if drawn and not create(lock, lease, successor, '1') then
    return {0, 1, 1, redis.call('GET', counter)}
  end
end
return {hear(publish, channel, '0'), 1, 0}
