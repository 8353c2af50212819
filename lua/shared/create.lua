-- Creates a lock of these fields and values. A script is not rolled back: a lock whose TTL was refused must not stay
-- without one. Returns what was wrong then. Numbers come as text, which is what Redis makes of them, at a price.
local function create(lock, lease, ...)
  redis.call('HSET', lock, ...)
  local set = redis.pcall('PEXPIRE', lock, lease)
  if set ~= 1 then
    redis.call('DEL', lock)
    return set
  end
end
