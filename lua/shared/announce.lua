-- Tells waiters that a lock was released: '0' wakes one waiter of each process, '1' all waiters. If an ACL withholds
-- the channel, the release must not fail: the waiters then come back by themselves.
local function announce(publish, channel, message)
  redis.pcall(publish, channel, message)
end
