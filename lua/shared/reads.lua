-- The read holds of a read-write lock. Each has a key of its own that lives as long as its lease, numbered from 1 for
-- each owner; the names are Redisson's, and these are the only keys that scripts name by themselves.

local function read_hold(lock, owner, number)
  local base = string.find(lock, '{', 1, true) and lock or '{' .. lock .. '}'
  return base .. ':' .. owner .. ':rwlock_timeout:' .. number
end

-- Milliseconds that the longest of an owner's read holds has to go; 0 when none lives.
local function reads_left(lock, owner, count)
  local longest = 0
  for number = 1, tonumber(count) or 0 do
    longest = math.max(longest, redis.call('PTTL', read_hold(lock, owner, number)))
  end
  return longest
end

-- As reads_left, over all owners.
local function all_reads_left(lock)
  local longest = 0
  local fields = redis.call('HGETALL', lock)
  for i = 1, #fields, 2 do
    longest = math.max(longest, reads_left(lock, fields[i], fields[i + 1]))
  end
  return longest
end

-- The terms that follow the other arguments. Not by unpack, which fails for some thousands.
local function terms_from(arguments, first)
  local terms = {}
  for i = first, #arguments do
    terms[#terms + 1] = arguments[i]
  end
  return terms
end

-- Sets an owner's read holds to these terms (ms each has to go), whatever they were.
local function set_reads(lock, owner, terms)
  local before = tonumber(redis.call('HGET', lock, owner) or 0)
  for number = 1, math.max(before, #terms) do
    local term = terms[number] or '0'
    if term == '0' then
      redis.call('DEL', read_hold(lock, owner, number))
    else
      redis.call('SET', read_hold(lock, owner, number), '1', 'PX', term)
    end
  end
  if #terms == 0 then
    redis.call('HDEL', lock, owner)
  else
    redis.call('HSET', lock, owner, #terms)
  end
end

-- After read holds of an owner have changed: sets the TTL to the longest hold, or deletes the lock when no reader is
-- left alive and returns true. In mode write all holds are the owner's; `left` is the longest of them.
local function settle_reads(lock, left)
  if redis.call('HGET', lock, 'mode') == 'write' then
    if left ~= '0' then
      redis.call('PEXPIRE', lock, left)
    end
    return false
  end
  local longest = all_reads_left(lock)
  if longest > 0 then
    redis.call('PEXPIRE', lock, longest)
    return false
  end
  redis.call('DEL', lock)
  return true
end

-- Why an owner does not read: -1 if others hold the lock, 0 if nobody does.
local function read_absence(lock, owner)
  local mode = redis.call('HGET', lock, 'mode')
  local others
  if mode == 'read' then
    others = all_reads_left(lock) > 0
  elseif mode == 'write' then
    others = redis.call('HEXISTS', lock, owner .. ':write') == 0
  else
    others = redis.call('EXISTS', lock) == 1
  end
  return others and -1 or 0
end
