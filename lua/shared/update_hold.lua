-- Sets an owner's count and the TTL to those of the holds that are left. False if the owner has no hold. If the
-- tombstone says that the call is over, the call counts as done.
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
