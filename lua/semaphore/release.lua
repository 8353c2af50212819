-- Adds permits, given back or new ones. Running it again is as good as once.
--
-- KEYS
--   permits    string   free permits
--   channel    channel  where free permits are announced
--   marker     string   exists once this call is done
-- ARGV
--   count      int      how many
--   message    text     what waiters are told; empty for how many are free
--   markerTtl  ms       how long a call may be sent again
--   latest     int      ms of the server's clock until which it may be run; 0 for ever
--   publish    text     PUBLISH or SPUBLISH
-- REPLY
--   {1, time}   done, now or by an earlier run
--   {-1, time}  too late: not run, unless by an earlier run that is forgotten by now
-- INCLUDE shared/check_deadline
-- INCLUDE shared/counts
-- INCLUDE shared/write_marker

if redis.call('EXISTS', marker) == 1 then
  return answer(1)
end
if not check_deadline(latest) then
  return answer(-1)
end
-- Redis would refuse it too, but only after the marker was written: the call, sent again, would count as done.
if number_in(permits) + count >= 2 ^ 63 then
  error('ERR increment or decrement would overflow', 0)
end
write_marker(marker, '1', markerTtl)
give_back(permits, count, publish, channel, message)
return answer(1)
