-- Called by a release that found no hold. If the lock has ended by its TTL, the waiters are told: a command that lowers a
-- TTL tells nobody, so they may sleep until the end of a longer one.
-- INCLUDE shared/announce

local function announce_lapse(lock, publish, channel, message)
  if redis.call('EXISTS', lock) == 0 then
    announce(publish, channel, message)
  end
end
