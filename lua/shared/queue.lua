-- A fair lock's waiters: `queue` is their order, `timeouts` what Redisson knows of each (the time at which its ticket
-- lapses), `alive` what this library knows of its own (the time until which it counts as alive).

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

-- Drops dead waiters at the head of the queue; returns how many. A waiter that is dropped before its ticket lapses
-- leaves the rest of its turn to the waiters behind it, as a waiter that gives up does: otherwise a dead Java waiter
-- would hold up the queue for all these turns.
local function prune(queue, timeouts, alive, now, grace)
  local dropped, unused = 0, 0
  local head = redis.call('LINDEX', queue, 0)
  while head do
    local deadline = deadline_of(timeouts, alive, head)
    if deadline and deadline > now then
      break
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

-- Tells the next waiter, on its own channel, that the lock is free.
local function wake_next(queue, channel, publish)
  local head = redis.call('LINDEX', queue, 0)
  if head then
    redis.pcall(publish, channel .. ':' .. head, '0')
  end
end
