-- Tells waiters that a lock was released: '0' wakes one of a process, '1' all. An ACL that withholds the channel must
-- not fail the release: the waiters then come back by themselves.
local function announce(publish, channel, message)
  redis.pcall(publish, channel, message)
end
