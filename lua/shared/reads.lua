-- The read holds of a read-write lock. Each has a key of its own that lives as long as its lease, numbered from 1 for
-- each owner; the names are Redisson's, and these are the only keys that scripts name by themselves.
-- INCLUDE shared/foreign

local function read_hold(lock, owner, number)
  local base = string.find(lock, '{', 1, true) and lock or '{' .. lock .. '}'
  return base .. ':' .. owner .. ':rwlock_timeout:' .. number
end

-- Read holds that are not known to have lapsed count as alive for as long as the lock is.
local function lock_left(lock)
  local left = redis.call('PTTL', lock)
  return left > 0 and left or 2 ^ 52
end

-- Returns ms until the longest of an owner's read holds ends (0 if none lives), the number of its last one, and the new
-- `vain`. The count is not trusted: one run looks in vain for so many read holds at most, beside the first of each
-- owner; `vain`: how many of them before this owner.
local function reads_left(lock, owner, count, vain)
  local MOST_IN_VAIN = 10000
  local longest, last = 0, 0
  vain = vain or 0
  for number = 1, tonumber(count) or 0 do
    local left = redis.call('PTTL', read_hold(lock, owner, number))
    if left ~= -2 then
      longest, last = math.max(longest, left), number
    elseif number > 1 then
      vain = vain + 1
      if vain > MOST_IN_VAIN then
        return lock_left(lock), last, vain
      end
    end
  end
  return longest, last, vain
end

-- As reads_left, over all owners. No hold lasts longer than the lock, so the first hold that lasts as long is the
-- longest; not so if another program has left the lock without TTL. A hash with any other field is not ours to delete.
local function all_reads_left(lock)
  local mode = redis.call('HGET', lock, 'mode')
  if not is_shared(mode) then
    return 0
  end
  local most = redis.call('PTTL', lock)
  local longest, vain = 0, 0
  local fields = redis.call('HGETALL', lock)
  for i = 1, #fields, 2 do
    local left, _, sum = reads_left(lock, fields[i], fields[i + 1], vain)
    longest, vain = math.max(longest, left), sum
    if most > 0 and longest >= most then
      return longest
    end
  end
  if longest > 0 then
    return longest
  end
  for i = 1, #fields, 2 do
    if not is_lock_field(mode, fields[i], fields[i + 1]) then
      return lock_left(lock)
    end
  end
  return 0
end

-- Deletes a lock in mode read whose readers have all lapsed; false for any other lock. A field "mode" alone is no lock.
local function clear_lapsed(lock)
  return all_reads_left(lock) == 0 and redis.call('HLEN', lock) > 1 and redis.call('DEL', lock) == 1
end

-- The terms behind the other arguments. unpack would fail for some thousands of them.
local function terms_from(arguments, first)
  local terms = {}
  for i = first, #arguments do
    terms[#terms + 1] = arguments[i]
  end
  return terms
end

-- Sets an owner's read holds to these terms (ms until each ends), whatever they were; `last`: the number of the last
-- one.
local function set_reads(lock, owner, terms, last)
  for number = 1, math.max(last, #terms) do
    local hold = read_hold(lock, owner, number)
    local term = terms[number] or '0'
    if term == '0' then
      redis.call('DEL', hold)
    elseif redis.call('PEXPIRE', hold, term) == 0 then
      redis.call('SET', hold, '1', 'PX', term)
    end
  end
  if #terms == 0 then
    redis.call('HDEL', lock, owner)
  else
    redis.call('HSET', lock, owner, #terms)
  end
end

-- Whether another owner is sure to read. Looks at a few owners, however many there are.
local function sees_other_reader(lock, owner)
  local fields = redis.call('HRANDFIELD', lock, 10, 'WITHVALUES')
  for i = 1, #fields, 2 do
    if fields[i] ~= owner and reads_left(lock, fields[i], fields[i + 1]) > 0 then
      return true
    end
  end
  return false
end

-- As set_reads, for a lock that others may read as well: its TTL is set to that of the longest hold. Deletes the lock
-- if no reader is left alive, and returns true then. In mode write all holds are the owner's; `left` is the longest of
-- them.
local function change_reads(lock, owner, terms, left)
  -- The owner's holds are read before the lock: before Redis 7.2 time goes on within a script, and a pause here must
  -- not make the holds of others look longer.
  local before, last = reads_left(lock, owner, redis.call('HGET', lock, owner))
  local most = redis.call('PTTL', lock)
  set_reads(lock, owner, terms, last)
  if redis.call('HGET', lock, 'mode') == 'write' then
    if left ~= '0' then
      redis.call('PEXPIRE', lock, left)
    end
    return false
  end
  local longest = reads_left(lock, owner, #terms)
  if most < 0 or longest < most then
    -- Another owner's hold is the longest, so the TTL of the lock stays.
    if before < most - 1 and sees_other_reader(lock, owner) then
      return false
    end
    longest = all_reads_left(lock)
  end
  if longest > 0 then
    redis.call('PEXPIRE', lock, longest)
    return false
  end
  redis.call('DEL', lock)
  return true
end

-- Why an owner does not read: -1 if others hold the lock, 0 if nobody does. Deletes a lock whose readers have all
-- lapsed.
local function why_not_reading(lock, owner)
  local mode = redis.call('HGET', lock, 'mode')
  local others
  if mode == 'read' then
    others = not clear_lapsed(lock)
  elseif mode == 'write' then
    others = redis.call('HEXISTS', lock, owner .. ':write') == 0
  else
    others = redis.call('EXISTS', lock) == 1
  end
  return others and -1 or 0
end
