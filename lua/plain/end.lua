-- Ends wire ids for good: the release of a lock, the undoing of calls that were given up, the loss of a hold. It may be
-- sent any number of times, before or behind any other command of these ids. A lock that is given back is announced.
--
-- KEYS
--   lock           hash     owner -> hold count
--   channel        channel  where releases are announced
--   tombstones...  string   of each wire id
-- ARGV
--   tombstoneTtl   ms       how long a command may be late
--   publish        text     PUBLISH or SPUBLISH
--   owners...      text     clientId:n, one for each tombstone
-- REPLY
--   n                       one wire id had the lock until now: how many subscribers heard of that, -1 if they could not be
--                           told
--   {heard, found, ...}     else, for each wire id 1 if it had the lock, now or at an earlier run, 0 if nobody had, -1 if
--                           another had
-- INCLUDE shared/bury
-- INCLUDE shared/hear
-- INCLUDE shared/remove_field

-- Most releases are of this kind: one field, which is there.
if #tombstones == 3 and redis.pcall('HDEL', lock, ARGV[3]) == 1 then
  redis.call('SET', tombstones[3], '1', 'PX', tombstoneTtl)
  return hear(publish, channel, '0')
end
local replies, removed = {0}, false
for i = 3, #tombstones do
  local found = 1
  if remove_field(lock, ARGV[i]) then
    removed = true
  else
    found = -redis.call('EXISTS', lock)
  end
  replies[i - 1] = bury(tombstones[i], found, tombstoneTtl)
end
if removed then
  replies[1] = hear(publish, channel, '0')
end
return replies
