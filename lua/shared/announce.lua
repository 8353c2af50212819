-- Tells waiters that a lock was released. An ACL that withholds the channel must not fail the release: the waiters
-- then come back by themselves.
local function announce(publish, channel)
  redis.pcall(publish, channel, '0')
end
