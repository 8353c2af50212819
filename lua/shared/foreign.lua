-- What the hash of a lock looks like, ours or Redisson's: one owner -> its hold count. A read-write lock has "mode" ->
-- read or write, next to any number of owners. A writer's field has ":write" behind its name. All else is foreign.

local function is_shared(mode)
  return mode == 'read' or mode == 'write'
end

-- Whether a lock in this mode, if it has one, can have this field.
local function is_lock_field(mode, field, value)
  -- A UUID and a number; the rest is captured. The pattern is one text, because it is matched at each refused try.
  local OWNER = '^%x%x%x%x%x%x%x%x%-%x%x%x%x%-%x%x%x%x%-%x%x%x%x%-%x%x%x%x%x%x%x%x%x%x%x%x:%-?%d+(.*)$'
  -- A count of more digits is other data: nobody nests so many read holds, and the scripts would look for each of them.
  local MOST_DIGITS = 5
  local shared = is_shared(mode)
  if shared and field == 'mode' then
    return true
  end
  local rest = string.find(value, '^%d+$') and string.match(field, OWNER)
  if rest == '' then
    return not shared or #value <= MOST_DIGITS
  end
  return shared and rest == ':write'
end

-- Ends the script by the error that Redis has for a key of another type.
local function refuse()
  error('WRONGTYPE the key holds a hash that is not a lock', 0)
end

-- Refuses a hash that is no lock: before anything is written, and where the caller has no field of its own. A key that
-- does not exist is free. In a large hash chance picks the fields that are looked at: all fields of a lock look alike.
local function refuse_foreign(lock)
  local SAMPLE = '10'
  local fields = redis.call('HRANDFIELD', lock, SAMPLE, 'WITHVALUES')
  local mode = #fields > 2 and redis.call('HGET', lock, 'mode')
  if #fields > 2 and not is_shared(mode) then
    refuse()
  end
  for i = 1, #fields, 2 do
    if not is_lock_field(mode, fields[i], fields[i + 1]) then
      refuse()
    end
  end
end
