-- Tells waiters that a lock was released: '0' wakes one waiter of each process, '1' all waiters. Returns how many subscribers
-- heard it; -1 if an ACL withholds the channel: the release must not fail, and the waiters come back by themselves.
local function hear(publish, channel, message)
  local heard = redis.pcall(publish, channel, message)
  return type(heard) == 'number' and heard or -1
end
