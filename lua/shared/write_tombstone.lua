-- Leaves a tombstone, with this value if it needs one; false if there is one already. The first write needs no memory:
-- before Redis 7 it lets the next write pass when memory is short.
local function write_tombstone(tombstone, ttl, value)
  if redis.call('EXISTS', tombstone) == 1 then
    return false
  end
  redis.call('DEL', tombstone)
  redis.call('SET', tombstone, value or '1', 'PX', ttl)
  return true
end
