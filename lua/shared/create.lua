-- Creates a lock of these fields and values. A script is not rolled back, so a lock whose TTL was refused is deleted:
-- it must not stay without one. Returns the error then, with the name of the command. Numbers come as text, because
-- Redis would make text of them, at a price.
local function create(lock, lease, ...)
  redis.call('HSET', lock, ...)
  local set = redis.pcall('PEXPIRE', lock, lease)
  if set ~= 1 then
    redis.call('DEL', lock)
    return {err = set.err .. ": 'pexpire'"}
  end
end
