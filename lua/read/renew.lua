-- Renews the read holds of many locks, each for its owner and for nobody else. A hold whose key has lapsed is not made
-- anew: a writer may have come by since. Never lowers a TTL. A key that holds other data by now counts as taken.
--
-- KEYS
--   locks...   hash  "mode" -> read or write; owner -> read holds; owner:write -> write holds. After them the keys of
--                    all their owners' read holds: while a slot moves, a cluster refuses what is not all in one place
-- ARGV
--   lease      ms    TTL of each read hold and its lock from now on, at least
--   owners...  text  clientId:n, one for each lock
-- REPLY
--   {r, ...}   for each lock 1 renewed, 0 gone, -1 taken by another
-- INCLUDE shared/raise_ttl
-- INCLUDE shared/reads

local locks = KEYS
local lease = ARGV[1]
local owners = #ARGV - 1

local replies = {}
for i = 1, owners do
  local lock = locks[i]
  local owner = ARGV[i + 1]
  local count = redis.pcall('HGET', lock, owner)
  local other = type(count) == 'table'
  local left, last = reads_left(lock, owner, count)
  if other then
    replies[i] = -1
  elseif left == 0 then
    replies[i] = why_not_reading(lock, owner)
    if count then
      set_reads(lock, owner, {}, last)
    end
  else
    for number = 1, last do
      raise_ttl(read_hold(lock, owner, number), lease)
    end
    raise_ttl(lock, lease)
    replies[i] = 1
  end
end
return replies
