-- Removes a field of a lock, and says whether it was there. Data of another type has none. A user without the right to do
-- it must learn that, not that the lock is lost.
local function remove_field(lock, field)
  local removed = redis.pcall('HDEL', lock, field)
  if removed ~= 1 and removed ~= 0 and not string.find(removed.err, 'WRONGTYPE', 1, true) then
    error(removed.err, 0)
  end
  return removed == 1
end
