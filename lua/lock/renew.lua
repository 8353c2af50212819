-- Renews many locks, each for its owner. Never creates a lock, never lowers a TTL. A key that holds other data by now
-- counts as taken and does not disturb its neighbours.
--
-- KEYS
--   locks...   hash  owner -> hold count
-- ARGV
--   lease      ms    TTL of each lock from now on, at least
--   owners...  text  clientId:n, one for each lock
-- REPLY
--   {r, ...}   for each lock 1 renewed, 0 gone, -1 taken by another
-- INCLUDE shared/raise_ttl
-- INCLUDE shared/why_not_held

local locks = KEYS
local lease = ARGV[1]

local replies = {}
for i, lock in ipairs(locks) do
  if redis.pcall('HEXISTS', lock, ARGV[i + 1]) == 1 then
    raise_ttl(lock, lease)
    replies[i] = 1
  else
    replies[i] = why_not_held(lock)
  end
end
return replies
