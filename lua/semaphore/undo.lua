-- Ends a call for permits whose outcome is unknown: gives back what it took, and refuses it should it come later.
--
-- KEYS
--   permits    string   free permits
--   channel    channel  where free permits are announced
--   marker     string   how many this call took, or "over"
-- ARGV
--   markerTtl  ms       how long a call may be sent again
--   publish    text     PUBLISH or SPUBLISH
-- REPLY
--   1          done
-- INCLUDE shared/counts
-- INCLUDE shared/write_marker

local taken = redis.call('GET', marker)
write_marker(marker, 'over', markerTtl)
if taken and taken ~= 'over' and taken ~= '0' then
  give_back(permits, taken, publish, channel)
end
return 1
