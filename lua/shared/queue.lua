-- A fair lock's waiters: `queue` is their order, `timeouts` what Redisson knows of each (the time at which its place
-- lapses), `alive` what this library knows of its own (the time until which it counts as alive).

-- When a waiter's place lapses; nil for one that has no time, which nobody would ever drop.
local function deadline_of(timeouts, alive, waiter)
  local timeout = redis.call('ZSCORE', timeouts, waiter)
  return timeout and tonumber(redis.call('ZSCORE', alive, waiter) or timeout)
end

-- Drops the dead at the head of the queue; returns how many.
local function prune(queue, timeouts, alive, now)
  local dropped = 0
  local head = redis.call('LINDEX', queue, 0)
  while head do
    local deadline = deadline_of(timeouts, alive, head)
    if deadline and deadline > now then
      break
    end
    redis.call('LPOP', queue)
    redis.call('ZREM', timeouts, head)
    redis.call('ZREM', alive, head)
    dropped = dropped + 1
    head = redis.call('LINDEX', queue, 0)
  end
  return dropped
end

-- Those behind one who left the queue are nearer to the lock by one turn.
local function move_up(timeouts, waiters, grace)
  for _, waiter in ipairs(waiters) do
    redis.call('ZINCRBY', timeouts, -grace, waiter)
  end
end

-- Tells the next waiter, on its own channel, that the lock is free.
local function wake_next(queue, channel, publish)
  local head = redis.call('LINDEX', queue, 0)
  if head then
    redis.pcall(publish, channel .. ':' .. head, '0')
  end
end
