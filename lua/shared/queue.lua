-- A fair lock's waiters. `queue` is their order, and `timeouts` what Redisson knows of each: the time at which its
-- ticket lapses. `alive` is what this library knows of its own: the time until which each counts as alive. With half a
-- millisecond at its end, that time is the waiter's last chance.

-- When a waiter's ticket lapses; nil for a waiter without a time, which would otherwise never be dropped.
local function deadline_of(timeouts, alive, waiter)
  local timeout = redis.call('ZSCORE', timeouts, waiter)
  return timeout and tonumber(redis.call('ZSCORE', alive, waiter) or timeout)
end

-- When a waiter has left the queue, the waiters behind it are nearer to the lock by one turn.
local function move_up(timeouts, waiters, turn)
  for _, waiter in ipairs(waiters) do
    redis.call('ZINCRBY', timeouts, -turn, waiter)
  end
end

-- As move_up, for all waiters that are left; but each keeps a whole turn from now for itself and for each waiter before
-- it.
local function close_ranks(queue, timeouts, now, grace, unused)
  for position, waiter in ipairs(redis.call('LRANGE', queue, 0, -1)) do
    local spare = (redis.call('ZSCORE', timeouts, waiter) or now) - now - position * grace
    if spare > 0 then
      move_up(timeouts, {waiter}, math.min(spare, unused))
    end
  end
end

-- Whether a waiter of this library has, or has had, its last chance; false for one of Redisson.
local function has_last_chance(alive, waiter)
  return tonumber(redis.call('ZSCORE', alive, waiter) or 0) % 1 ~= 0
end

-- Drops dead waiters at the head of the queue of a free lock; returns how many. A waiter dropped before its ticket
-- lapses leaves the rest of its turn to those behind it, as one that gives up does. Otherwise a dead Java waiter would
-- hold up the queue for all these turns.
local function prune(queue, timeouts, alive, now, grace)
  -- Milliseconds. If the server stood still, nobody was heard of, and what the waiters have sent is yet to be read. So
  -- the first that seems to be dead has a last chance; those behind it have had as much time as it had.
  local LAST_CHANCE = 200
  local dropped, unused, waited = 0, 0, false
  local head = redis.call('LINDEX', queue, 0)
  while head do
    local deadline = deadline_of(timeouts, alive, head)
    if deadline and deadline > now then
      break
    end
    if deadline and not waited and redis.call('ZSCORE', alive, head) then
      waited = has_last_chance(alive, head)
      if not waited then
        redis.call('ZADD', alive, now + LAST_CHANCE + 0.5, head)
        break
      end
    end
    local timeout = tonumber(redis.call('ZSCORE', timeouts, head) or now)
    unused = unused + math.max(0, math.min(grace, timeout - unused - now))
    redis.call('LPOP', queue)
    redis.call('ZREM', timeouts, head)
    redis.call('ZREM', alive, head)
    dropped = dropped + 1
    head = redis.call('LINDEX', queue, 0)
  end
  if unused > 0 then
    close_ranks(queue, timeouts, now, grace, unused)
  end
  return dropped
end

-- Tells the next waiter, on its own channel, that the lock is free. If that one has its last chance, it may be dead: then
-- also the first one that is not, so that somebody looks again.
local function wake_next(queue, timeouts, alive, channel, publish, now)
  local head = redis.call('LINDEX', queue, 0)
  if not head then
    return
  end
  redis.pcall(publish, channel .. ':' .. head, '0')
  if not has_last_chance(alive, head) then
    return
  end
  for _, waiter in ipairs(redis.call('LRANGE', queue, 1, -1)) do
    if (deadline_of(timeouts, alive, waiter) or 0) > now then
      redis.pcall(publish, channel .. ':' .. waiter, '0')
      return
    end
  end
end

-- The lock is free: drops dead waiters, and tells the next.
local function pass_on(queue, timeouts, alive, channel, publish, now, grace)
  prune(queue, timeouts, alive, now, grace)
  wake_next(queue, timeouts, alive, channel, publish, now)
end
