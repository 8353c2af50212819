-- The readers of a read-write lock. Each has keys that live as long as its leases. One of this library has one key,
-- whatever its count. One of Redisson has a key for each hold, numbered from 1. The names are Redisson's, and these are
-- the only keys that scripts name by themselves.
-- INCLUDE shared/foreign

local function hold_key(lock, owner, number)
  local base = string.find(lock, '{', 1, true) and lock or '{' .. lock .. '}'
  return base .. ':' .. owner .. ':rwlock_timeout:' .. number
end

-- What is not known to have lapsed counts as alive for as long as the lock is.
local function lock_left(lock)
  local left = redis.call('PTTL', lock)
  return left > 0 and left or 2 ^ 52
end

-- Returns ms until a reader's longest hold ends (0 if none lives), and the new `vain`. The count is not trusted: one run looks
-- in vain for so many holds at most, in addition to the first of each reader. `vain`: how many of them before this reader.
local function reader_left(lock, owner, count, vain)
  local MOST_IN_VAIN = 10000
  local longest = 0
  for number = 1, tonumber(count) or 0 do
    local left = redis.call('PTTL', hold_key(lock, owner, number))
    if left ~= -2 then
      longest = math.max(longest, left, 1)
    elseif number > 1 then
      vain = vain + 1
      if vain > MOST_IN_VAIN then
        return math.max(lock_left(lock), longest), vain
      end
    end
  end
  return longest, vain
end

-- As reader_left, over all readers; 0 for a key that is no read-write lock. No hold lasts longer than the lock, so the
-- first hold that lasts as long is the longest. That is not so if another program has left the lock without TTL. A hash
-- with any other field is not ours to delete.
local function longest_reader(lock)
  local mode = redis.call('HGET', lock, 'mode')
  if not is_shared(mode) then
    return 0
  end
  local most = redis.call('PTTL', lock)
  local longest, vain = 0, 0
  local fields = redis.call('HGETALL', lock)
  for i = 1, #fields, 2 do
    local left
    left, vain = reader_left(lock, fields[i], fields[i + 1], vain)
    longest = math.max(longest, left)
    if most > 0 and longest >= most then
      return longest
    end
  end
  for i = 1, longest > 0 and 0 or #fields, 2 do
    if not is_lock_field(mode, fields[i], fields[i + 1]) then
      return lock_left(lock)
    end
  end
  return longest
end

-- Deletes a lock in mode read whose readers have all lapsed; false for any other lock. A field "mode" alone is no lock.
local function clear_lapsed(lock)
  return longest_reader(lock) == 0 and redis.call('HLEN', lock) > 1 and redis.call('DEL', lock) == 1
end

-- Whether anybody is sure to read. Looks at a few readers, however many there are.
local function sees_reader(lock)
  local fields = redis.call('HRANDFIELD', lock, 10, 'WITHVALUES')
  for i = 1, #fields, 2 do
    if reader_left(lock, fields[i], fields[i + 1], 0) > 0 then
      return true
    end
  end
  return false
end

-- A reader has been removed from a lock in mode read: the TTL becomes that of the longest hold that is left. Deletes the lock
-- if there is none, and returns true then. `left`: ms that the removed reader had; unless it was the longest, the TTL stays.
local function settle_readers(lock, left)
  if left < redis.call('PTTL', lock) - 1 and sees_reader(lock) then
    return false
  end
  local longest = longest_reader(lock)
  if longest > 0 then
    redis.call('PEXPIRE', lock, longest)
    return false
  end
  redis.call('DEL', lock)
  return true
end
