-- Leaves a tombstone; false if it stands already. A write that needs no memory comes first: before Redis 7 it lets the
-- next one pass where memory is short.
local function write_tombstone(tombstone, ttl)
  if redis.call('EXISTS', tombstone) == 1 then
    return false
  end
  redis.call('DEL', tombstone)
  redis.call('SET', tombstone, '1', 'PX', ttl)
  return true
end
