-- Says for good that a wire id is over. The tombstone's value is what the first END found, so that every repetition
-- gives the same answer. But others may have taken since what force has ended. A wire id that had a field until now has
-- no tombstone yet. Each script removes fields before it writes this: when memory is short, a first write that needs
-- none lets the next ones pass.
local function bury(tombstone, found, ttl)
  local before = found <= 0 and tonumber(redis.call('GET', tombstone))
  if before then
    return before > 0 and before or math.min(before, found)
  end
  -- Minus zero would be written as -0.
  redis.call('SET', tombstone, found + 0, 'PX', ttl)
  return found
end
