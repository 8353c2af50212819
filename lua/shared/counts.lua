-- Numbers that calls wait for: free permits, or the count of a latch. The permits that are out are in a zset: id -> ms
-- of the server's clock at which the permit's lease ends.

-- The number in a key; 0 if there is no key. Other data is refused by the error of Redis, before anything is written.
-- Whether Redis counts as far as a number of more digits, only Redis knows.
local function number_in(key)
  local value = redis.call('GET', key)
  if not value then
    return 0
  end
  local whole = value == '0' or string.find(value, '^%-?[1-9]%d*$') and #value <= 17
  return whole and tonumber(value) or redis.call('DECRBY', key, 0)
end

-- Adds to the free permits and announces how many are free now, or `message`. If fewer than one is free nothing is
-- announced, because Redisson's waiters fail at a negative number.
local function give_back(permits, count, publish, channel, message)
  local free = redis.call('INCRBY', permits, count)
  if free > 0 then
    redis.pcall(publish, channel, message ~= '' and message or string.format('%.0f', free))
  end
end

-- An id as it stands in Redis: 16 bytes for 32 hex digits.
local function raw(id)
  return (string.gsub(id, '%x%x', function(digits)
    return string.char(tonumber(digits, 16))
  end))
end

-- Takes back the permits whose leases have ended, however many. Returns how many permits are free then.
local function prune(permits, leases, now, publish, channel)
  local free = number_in(permits)
  local ended = redis.call('ZREMRANGEBYSCORE', leases, '-inf', now)
  if ended == 0 then
    return free
  end
  give_back(permits, ended, publish, channel)
  return free + ended
end
