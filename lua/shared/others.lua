-- How many other processes go before the successor, a waiter in the process of the last holder; nil if the successor
-- may have the lock now. With `ask` '0' the release is announced only if there is no successor any more. `own`: how
-- many of the subscribers are of that process. With `ask` '2', or without the right to announce, subscribers cannot be
-- counted: that counts as one.
local function others_first(lock, successorTombstone, channel, message, ask, own, publish)
  local possible = redis.call('EXISTS', lock, successorTombstone) == 0
  if possible and ask == '0' then
    return nil
  end
  local heard = redis.pcall(publish, channel, message)
  local others = ask ~= '2' and type(heard) == 'number' and math.max(heard - own, 0) or 1
  if possible and others == 0 then
    return nil
  end
  return others
end
