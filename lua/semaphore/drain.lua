-- Takes all free permits. Running it again is as good as once, and a call that was given up gets nothing.
--
-- KEYS
--   permits    string  free permits
--   marker     string  how many this call took, or "over"
-- ARGV
--   markerTtl  ms      how long a call may be sent again
-- REPLY
--   n          how many it took, now or by an earlier run; a text
-- INCLUDE shared/counts
-- INCLUDE shared/write_marker

local permits, marker = KEYS[1], KEYS[2]
local markerTtl = ARGV[1]

local earlier = redis.call('GET', marker)
if earlier == 'over' then
  return '0'
end
if earlier then
  -- A server counts the replicas for a WAIT by the connection's last write, and the first run was on another connection.
  redis.call('PEXPIRE', marker, markerTtl)
  return earlier
end
-- The number as Redis has it, because Lua's numbers are not exact so far.
local free = number_in(permits) > 0 and redis.call('GET', permits) or '0'
if free ~= '0' then
  redis.call('DECRBY', permits, free)
end
write_marker(marker, free, markerTtl)
return free
