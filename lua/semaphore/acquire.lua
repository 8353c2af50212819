-- Takes permits if that many are free. Running it again is as good as once, and a call that was given up gets nothing.
--
-- KEYS
--   permits    string  free permits
--   marker     string  how many this call took, or "over"
-- ARGV
--   count      int     how many it wants
--   markerTtl  ms      how long a call may be sent again
-- REPLY
--   {1, free}  granted; permits that are left
--   {0, set}   not so many are free; set: 0 if nobody has set how many there are
--   {2, 0}     this call is over
-- INCLUDE shared/counts
-- INCLUDE shared/write_marker

local permits, marker = KEYS[1], KEYS[2]
local count, markerTtl = ARGV[1], ARGV[2]

local earlier = redis.call('GET', marker)
if earlier == 'over' then
  return {2, 0}
end
local free = number_in(permits)
if earlier then
  -- A server counts the replicas for a WAIT by the connection's last write, and the first run was on another connection.
  redis.call('PEXPIRE', marker, markerTtl)
  return {1, math.max(0, free)}
end
if free < tonumber(count) then
  return {0, redis.call('EXISTS', permits)}
end
redis.call('DECRBY', permits, count)
write_marker(marker, count, markerTtl)
return {1, free - count}
