-- How many others are to have a lock that was given back before the heir, who waits in the giver's process: undefined if
-- the heir may have it now. Unless they are to be asked, nobody is told. `own` of those who hear of it are of that process;
-- who may not be told cannot be counted, and counts as one.
local function others_first(lock, heirTombstone, channel, message, ask, own, publish)
  local possible = redis.call('EXISTS', lock, heirTombstone) == 0
  if possible and ask == '0' then
    return nil
  end
  local heard = redis.pcall(publish, channel, message)
  local others = type(heard) == 'number' and math.max(heard - own, 0) or 1
  if possible and others == 0 then
    return nil
  end
  return others
end
