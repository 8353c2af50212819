-- Adds permits, given back or new ones. Running it again is as good as once.
--
-- KEYS
--   permits    string   free permits
--   channel    channel  where free permits are announced
--   marker     string   exists once this call is done
-- ARGV
--   count      int      how many
--   markerTtl  ms       how long a call may be sent again
--   publish    text     PUBLISH or SPUBLISH
-- REPLY
--   1          done, now or by an earlier run
-- FLAGS allow-oom
-- INCLUDE shared/counts
-- INCLUDE shared/mark

local permits, channel, marker = KEYS[1], KEYS[2], KEYS[3]
local count, markerTtl, publish = ARGV[1], ARGV[2], ARGV[3]

if redis.call('EXISTS', marker) == 0 then
  number_in(permits)
  mark(marker, '1', markerTtl)
  give_back(permits, count, publish, channel)
end
return 1
