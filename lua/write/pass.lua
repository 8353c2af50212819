-- Ends a writer that does not read, and grants the write side in one step to the successor, a waiter of the same
-- process. That is lock cohorting (Dice, Marathe and Shavit 2012). If the successor is over, or the lock cannot be
-- granted, this is an END that announces: the giver never fails for the successor's sake.
--
-- KEYS
--   lock                hash     "mode" -> read or write; owner -> read holds; owner:write -> write holds
--   channel             channel  where releases are announced
--   tombstone           string   of the giver's wire id
--   successorTombstone  string   exists once the successor's is over
--   successorSide       string   exists once its write side is
--   writers             zset     waiting writer -> ms of the server's clock until which it counts as alive
--   nextTombstone       string   exists once the next writer is over; without one, any key
-- ARGV
--   owner               text     the giver, clientId:n
--   field               text     clientId:n:write
--   successor           text     clientId:n
--   successorField      text     clientId:n:write
--   lease               ms       of the successor
--   tombstoneTtl        ms       how long a command may be late
--   publish             text     PUBLISH or SPUBLISH
--   nextWriter          text     who waits behind the successor; empty if nobody does
--   aliveFor            int      ms for which a waiter that is not heard of counts as alive; 0 if it is not advertised
-- REPLY
--   {heard, found, has}          heard and found as from END; has: 1 if the successor writes
-- INCLUDE shared/bury
-- INCLUDE shared/create
-- INCLUDE shared/hear
-- INCLUDE shared/remove_field
-- INCLUDE shared/successor
-- INCLUDE shared/waiting_writers

-- A late try of the giver may have been taken for that of a waiting writer. First, because it refuses other data there.
redis.call('ZREM', writers, owner)
if not remove_field(lock, field) then
  local found = bury(tombstone, -redis.call('EXISTS', lock), tombstoneTtl)
  return {0, found, has_lock(lock, successorField, lease)}
end
bury(tombstone, 2, tombstoneTtl)
-- Readers must not make way for a writer that has given up meanwhile.
if redis.call('EXISTS', nextTombstone) == 0 then
  advertise_writer(writers, nextWriter, aliveFor)
end
-- What is left next to the mode is a read of the giver, which its owner does not know any more.
redis.call('DEL', lock)
if redis.call('EXISTS', successorTombstone, successorSide) == 0 then
  redis.call('ZREM', writers, successor)
  if not create(lock, lease, 'mode', 'write', successorField, '1') then
    return {0, 2, 1}
  end
end
return {hear(publish, channel, '1'), 2, 0}
