-- A waiter that a release is to grant the lock.
-- INCLUDE shared/raise_ttl

-- Says by 1 or 0 whether it has the lock already. It may be by a try of its own that was sent earlier, so its lease has
-- to last from here.
local function has_lock(lock, field, lease)
  if redis.pcall('HEXISTS', lock, field) ~= 1 then
    return 0
  end
  raise_ttl(lock, lease)
  return 1
end
