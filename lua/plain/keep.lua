-- Keeps locks that their owners have: renews, extends, and notes counts. Never creates a lock, never lowers a TTL. Counts are
-- absolute, for people and for Java; they decide nothing, so a count that cannot be written is left. A key that holds
-- other data by now counts as taken, and does not disturb its neighbours.
--
-- KEYS
--   locks...   hash  owner -> hold count
-- ARGV
--   lease      ms    TTL of each lock from now on, at least
--   owners...  text  clientId:n, one for each lock
--   counts...  text  hold count of each; empty to leave it
-- REPLY
--   n                what is found of the lock, if it is one
--   {found, ...}     for each lock 1 if its owner has it, 0 if nobody has, -1 if another has
-- INCLUDE shared/raise_ttl
-- INCLUDE shared/remove_field

local replies = {}
for i, lock in ipairs(locks) do
  local owner, count = ARGV[2 * i], ARGV[2 * i + 1]
  if redis.pcall('HEXISTS', lock, owner) == 1 then
    raise_ttl(lock, lease)
    if count ~= '' then
      redis.pcall('HSET', lock, owner, count)
    end
    replies[i] = 1
  else
    -- A replica may lag, so nobody shall learn from it that a lock is gone: it refuses to write.
    remove_field(lock, owner .. ':gone')
    replies[i] = -redis.call('EXISTS', lock)
  end
end
return replies[2] and replies or replies[1]
