-- Undoes acquires, or one nested acquire, whose outcome is unknown or unwanted, and leaves a tombstone for each that
-- refuses it should it arrive later still. Waiters that give up leave the queue by this script, many in one pass: a
-- waiter that left alone would move all waiters behind it. A nested call is undone alone: the owner's other holds stay
-- as they are.
--
-- KEYS
--   lock           hash     owner -> hold count
--   queue          list     waiters in their order
--   timeouts       zset     waiter -> ms of the server's clock at which its ticket lapses
--   alive          zset     waiter of this library -> ms of the server's clock until which it counts as alive
--   channel        channel  with ":" and a waiter's name: where it is woken
--   tombstones...  string   of each wire id, or of the nested call
-- ARGV
--   count          int      holds without the undone one; 0 gives the lock back
--   left           int      ms that the longest other hold has to go; unused with count 0
--   tombstoneTtl   ms       how long a command may be late
--   publish        text     PUBLISH or SPUBLISH
--   grace          ms       what Redisson grants each waiter to take its turn
--   owners...      text     clientId:n, one for each tombstone
-- REPLY
--   1              there was something to undo
--   0              there was not, or an earlier run has undone it
-- FLAGS allow-oom
-- INCLUDE shared/clock
-- INCLUDE shared/queue
-- INCLUDE shared/write_tombstone

local lock, queue, timeouts, alive, channel, tombstones =
  KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS
local count, left, tombstoneTtl, publish, grace = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

-- How many waiters one command reads or writes.
local CHUNK = 500

-- Takes waiters out, each from its last position, and moves the waiters behind them up. Reads the queue from its end to
-- the first waiter that leaves, and writes the waiters that stay of that part anew.
local function withdraw(waiters)
  local leaving, missing = {}, #waiters
  for _, waiter in ipairs(waiters) do
    leaving[waiter] = true
  end
  -- From the end of the queue: the waiters that leave; the waiters that stay, and for each how many leave behind it.
  local left_by, staying, behind = {}, {}, {}
  local position = redis.call('LLEN', queue)
  while position > 0 and missing > 0 do
    local chunk = redis.call('LRANGE', queue, math.max(0, position - CHUNK), position - 1)
    for i = #chunk, 1, -1 do
      local waiter = chunk[i]
      position = position - 1
      if leaving[waiter] then
        leaving[waiter] = nil
        missing = missing - 1
        left_by[#left_by + 1] = waiter
        if missing == 0 then
          break
        end
      else
        staying[#staying + 1] = waiter
        behind[#staying] = #left_by
      end
    end
  end
  if #left_by == 0 then
    return false
  end
  for i, waiter in ipairs(staying) do
    local turns = #left_by - behind[i]
    if turns > 0 then
      move_up(timeouts, {waiter}, turns * grace)
    end
  end
  -- LTRIM cannot empty a list.
  if position == 0 then
    redis.call('DEL', queue)
  else
    redis.call('LTRIM', queue, 0, position - 1)
  end
  local again = {}
  for i = #staying, 1, -1 do
    again[#again + 1] = staying[i]
    if #again == CHUNK or i == 1 then
      redis.call('RPUSH', queue, unpack(again))
      again = {}
    end
  end
  redis.call('ZREM', timeouts, unpack(left_by))
  redis.call('ZREM', alive, unpack(left_by))
  return true
end

-- All tombstones are written before anything else can fail.
local ended = {}
for i = 6, #tombstones do
  if write_tombstone(tombstones[i], tombstoneTtl) then
    ended[#ended + 1] = ARGV[i]
  end
end
local undone = withdraw(ended) and 1 or 0
for _, owner in ipairs(ended) do
  local current = redis.call('HGET', lock, owner)
  if current and tonumber(current) > tonumber(count) then
    if count ~= '0' and left ~= '0' then
      redis.call('PEXPIRE', lock, left)
      redis.call('HSET', lock, owner, count)
    else
      redis.call('HDEL', lock, owner)
    end
    undone = 1
  end
end
-- A waiter that did not hold the lock may have been the head of the queue, for which all others waited.
if undone == 1 and redis.call('EXISTS', lock) == 0 then
  pass_on(queue, timeouts, alive, channel, publish, server_time(), grace)
end
return undone
