-- Sets the number of a semaphore or latch that has none, once. A call that is sent again gets the same answer.
--
-- KEYS
--   number     string   free permits, or a latch's count
--   channel    channel  where waiters are told
--   marker     string   what this call was answered
-- ARGV
--   count      int      the number
--   message    text     what waiters are told
--   markerTtl  ms       how long a call may be sent again
--   latest     int      ms of the server's clock until which it may be run; 0 for ever
--   publish    text     PUBLISH or SPUBLISH
-- REPLY
--   {1, time}   set, now or by an earlier run
--   {0, time}   there is one already
--   {-1, time}  too late: not run, unless by an earlier run that is forgotten by now
-- INCLUDE shared/check_deadline
-- INCLUDE shared/counts
-- INCLUDE shared/hear
-- INCLUDE shared/write_marker

local earlier = redis.call('GET', marker)
if earlier then
  return answer(tonumber(earlier))
end
if not check_deadline(latest) then
  return answer(-1)
end
if redis.call('EXISTS', number) == 1 then
  number_in(number)
  write_marker(marker, '0', markerTtl)
  return answer(0)
end
redis.call('SET', number, count)
write_marker(marker, '1', markerTtl)
hear(publish, channel, message)
return answer(1)
