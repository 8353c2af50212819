-- Leaves a tombstone, of this value if it needs one; false if it stands already. A write that needs no memory comes first:
-- before Redis 7 it lets the next one pass where memory is short.
local function write_tombstone(tombstone, ttl, value)
  if redis.call('EXISTS', tombstone) == 1 then
    return false
  end
  redis.call('DEL', tombstone)
  redis.call('SET', tombstone, value or '1', 'PX', ttl)
  return true
end
