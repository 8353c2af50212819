-- Counts a latch down by one; at zero it is open, its key is deleted, and all who wait are told. Running it again is as
-- good as once. An open latch stays open.
--
-- KEYS
--   count      string   what is left to count down
--   channel    channel  where the opening is announced
--   marker     string   exists once this call is done
-- ARGV
--   markerTtl  ms       how long a call may be sent again
--   latest     int      ms of the server's clock until which it may be run; 0 for ever
--   publish    text     PUBLISH or SPUBLISH
-- REPLY
--   {1, time}   done, now or by an earlier run
--   {-1, time}  too late: not run, unless by an earlier run that is forgotten by now
-- INCLUDE shared/check_deadline
-- INCLUDE shared/counts
-- INCLUDE shared/hear
-- INCLUDE shared/write_marker

if redis.call('EXISTS', marker) == 1 then
  return answer(1)
end
if not check_deadline(latest) then
  return answer(-1)
end
local left = number_in(count)
write_marker(marker, '1', markerTtl)
if left > 1 then
  redis.call('DECRBY', count, 1)
else
  redis.call('DEL', count)
  if left == 1 then
    hear(publish, channel, '0')
  end
end
return answer(1)
