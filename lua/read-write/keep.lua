-- Keeps what owners have of read-write locks, on both sides: renews, extends, and notes counts. Never creates a lock,
-- never lowers a TTL. In mode write it sets an owner's read field to exactly what the owner has. In mode read it
-- removes nothing, and does not make a reader anew whose key has lapsed: a writer may have come by since. A count that
-- cannot be written is left. A key that holds other data by now counts as taken, and does not disturb its neighbours.
--
-- KEYS
--   locks...   hash  "mode" -> read or write; owner -> read holds; owner:write -> write holds. After them the keys of those
--                    who read: while a slot moves, a cluster refuses what is not all in one place
-- ARGV
--   lease      ms    TTL of each lock from now on, at least
--   owners...  text  clientId:n, one for each lock
--   reads...   text  its read holds; empty to leave them
--   writes...  text  its write holds; empty to leave them
-- REPLY
--   n                what is found of the lock, if it is one
--   {found, ...}     for each lock the sides that its owner has: 1 reads, 2 writes, 3 both; 0 nobody has the lock, -1 another
-- INCLUDE shared/raise_ttl
-- INCLUDE shared/readers
-- INCLUDE shared/remove_field

local function keep_writer(lock, owner, reads, writes)
  raise_ttl(lock, lease)
  if writes ~= '' then
    redis.pcall('HSET', lock, owner .. ':write', writes)
  end
  local hold = hold_key(lock, owner, 1)
  if reads == '0' then
    redis.call('HDEL', lock, owner)
    redis.call('DEL', hold)
  elseif reads ~= '' then
    redis.pcall('HSET', lock, owner, reads)
  end
  if redis.call('HEXISTS', lock, owner) == 0 then
    return 2
  end
  -- A nested read has the deadline of its grant, which may be later than its own lease.
  local left = redis.call('PTTL', lock)
  if redis.call('PTTL', hold) < left then
    redis.pcall('SET', hold, '1', 'PX', left)
  end
  return 3
end

local function keep_reader(lock, owner, reads)
  local hold = hold_key(lock, owner, 1)
  if redis.call('HEXISTS', lock, owner) == 0 or redis.call('PTTL', hold) == -2 then
    return longest_reader(lock) == 0 and 0 or -1
  end
  raise_ttl(hold, lease)
  raise_ttl(lock, lease)
  -- '0' comes late: it was sent while the owner wrote, and a reader with this count would count as lapsed.
  if reads ~= '' and reads ~= '0' then
    redis.pcall('HSET', lock, owner, reads)
  end
  return 1
end

local replies = {}
for i = 1, (#ARGV - 1) / 3 do
  local lock = locks[i]
  local owner, reads, writes = ARGV[3 * i - 1], ARGV[3 * i], ARGV[3 * i + 1]
  local mode = redis.pcall('HGET', lock, 'mode')
  if mode == 'write' and redis.call('HEXISTS', lock, owner .. ':write') == 1 then
    replies[i] = keep_writer(lock, owner, reads, writes)
  elseif mode == 'read' then
    replies[i] = keep_reader(lock, owner, reads)
  else
    replies[i] = -redis.call('EXISTS', lock)
  end
  if replies[i] <= 0 then
    -- A replica may lag, so nobody shall learn from it that a lock is gone: it refuses to write.
    remove_field(lock, owner .. ':gone')
  end
end
return replies[2] and replies or replies[1]
