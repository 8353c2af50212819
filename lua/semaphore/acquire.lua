-- Takes permits if that many are free, or all that are. Running it again is as good as once, and a call that was given up
-- gets nothing.
--
-- KEYS
--   permits    string  free permits
--   marker     string  how many this call took, or "over"
-- ARGV
--   count      int     how many it wants; 0 for all that are free
--   markerTtl  ms      how long a call may be sent again
-- REPLY
--   {1, free, taken}  granted; permits that are left; a text: how many it took, now or at an earlier run
--   {0}               not so many are free
--   {2}               this call is over
-- INCLUDE shared/counts
-- INCLUDE shared/write_marker

local earlier = redis.call('GET', marker)
if earlier == 'over' then
  return {2}
end
local free = number_in(permits)
if earlier then
  -- A server counts the replicas for a WAIT by the connection's last write, and the first run was on another connection.
  redis.call('PEXPIRE', marker, markerTtl)
  return {1, math.max(0, free), earlier}
end
-- All of them as Redis has it, because Lua's numbers are not exact so far.
local taken = count == '0' and free > 0 and redis.call('GET', permits) or count
if free < tonumber(taken) then
  return {0}
end
if taken ~= '0' then
  redis.call('DECRBY', permits, taken)
end
write_marker(marker, taken, markerTtl)
return {1, free - taken, taken}
