-- Ends the wire id of whoever holds the lock. A repetition gives the same answer, and leaves a later holder alone.
--
-- KEYS
--   lock          hash     owner -> hold count
--   channel       channel  where releases are announced
--   marker        string   the answer, once this call is over
-- ARGV
--   tombstones    text     what the tombstone of a wire id begins with
--   tombstoneTtl  ms       how long a command may be late
--   publish       text     PUBLISH or SPUBLISH
-- REPLY
--   {owner, ...}  the wire ids that had the lock
-- INCLUDE shared/forced
-- INCLUDE shared/foreign
-- INCLUDE shared/hear

refuse_foreign(lock)
local before = forced_before(marker)
if before then
  return before
end
local owners = redis.call('HKEYS', lock)
redis.call('DEL', lock)
note_forced(marker, owners, tombstones, tombstoneTtl)
if #owners > 0 then
  hear(publish, channel, '0')
end
return owners
