-- Sets an owner's count and the TTL to those of the holds that are left. False if it has no hold. A command that is
-- over by its tombstone has been done.
local function update_hold(lock, tombstone, owner, count, left)
  if redis.call('EXISTS', tombstone) == 1 then
    return true
  end
  if redis.call('HEXISTS', lock, owner) == 0 then
    return false
  end
  redis.call('PEXPIRE', lock, left)
  redis.call('HSET', lock, owner, count)
  return true
end
