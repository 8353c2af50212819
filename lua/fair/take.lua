-- Takes a free lock for a fresh wire id if nobody is before it in the queue. A call that is refused and waits gets a
-- ticket at the end of the queue, or keeps its ticket. It also keeps the tickets of its co-waiters, in the same
-- process. Running the script again is as good as once.
--
-- KEYS
--   lock          hash     owner -> hold count
--   queue         list     waiters in their order
--   timeouts      zset     waiter -> ms of the server's clock at which its ticket lapses
--   alive         zset     waiter of this library -> ms of the server's clock until which it counts as alive
--   tombstone     string   exists once this wire id is over
--   channel       channel  with ":" and a waiter's name: where it is woken
-- ARGV
--   owner         text     clientId:n
--   lease         ms       TTL of the lock
--   grace         ms       what Redisson grants each waiter to take its turn
--   aliveFor      int      ms for which a waiter that is not heard of counts as alive; 0 if this one does not wait
--   publish       text     PUBLISH or SPUBLISH
--   coWaiters...  text     waiters whose tickets are to be kept
-- REPLY
--   1                      granted
--   {1, 0, '', i...}       granted; coWaiters (from 1) that lost their ticket
--   {0, ms, holder, i...}  refused; when it may be free, -1 if never; who holds the lock, or is next; coWaiters (from 1) that
--                          lost their ticket or are next
--   {2}                    this wire id is over
-- INCLUDE shared/clock
-- INCLUDE shared/create
-- INCLUDE shared/foreign
-- INCLUDE shared/queue
-- INCLUDE shared/raise_ttl

-- The waiter whose turn it is was woken. If it does not come, the caller has to look again soon.
local LONGEST_LOOK_AWAY = 1000

if redis.call('EXISTS', tombstone) == 1 then
  return {2}
end
if redis.call('HEXISTS', lock, owner) == 1 then
  raise_ttl(lock, lease)
  return 1
end
local free = redis.call('EXISTS', lock) == 0
if not free then
  refuse_foreign(lock)
end
local now = server_time()
local term = now + math.max(0, redis.call('PTTL', lock)) + grace
-- Counts a waiter as alive from now on; false if it has no ticket. Its time in `timeouts` is never lowered, because
-- Redisson takes its own grace off every ticket at each grant.
local function refresh(waiter)
  if not redis.call('ZSCORE', timeouts, waiter) then
    return false
  end
  redis.call('ZADD', timeouts, 'XX', 'GT', term, waiter)
  redis.call('ZADD', alive, now + aliveFor, waiter)
  return true
end
-- Keeps `alive` as long as the last ticket: without it a dead waiter would look like one of Redisson.
local function keep_alive()
  local latest = redis.call('ZREVRANGE', timeouts, 0, 0, 'WITHSCORES')[2]
  raise_ttl(alive, math.max(aliveFor, math.min((latest or now) - now, 2 ^ 52)))
end

-- The refreshes come first, so that no waiter of this process is taken for dead. While the lock is held it drops no
-- waiter. So after a stall of the server all waiters have the time to say that they are alive.
local has_ticket = aliveFor ~= '0' and refresh(owner)
local reply = {0, 0, ''}
for i = 6, #ARGV do
  if not refresh(ARGV[i]) then
    reply[#reply + 1] = i - 5
  end
end
local dropped = free and prune(queue, timeouts, alive, now, grace) or 0
local head = redis.call('LINDEX', queue, 0)

if free and (not head or head == owner) then
  local failure = create(lock, lease, owner, '1')
  if failure then
    return failure
  end
  if has_ticket then
    redis.call('LPOP', queue)
    redis.call('ZREM', timeouts, owner)
    redis.call('ZREM', alive, owner)
    move_up(timeouts, redis.call('ZRANGE', timeouts, 0, -1), grace)
  end
  if aliveFor ~= '0' then
    keep_alive()
  end
  if #reply > 3 then
    reply[1] = 1
    return reply
  end
  return 1
end

if not free then
  reply[2], reply[3] = redis.call('PTTL', lock), redis.call('HKEYS', lock)[1] or ''
else
  reply[2], reply[3] = math.min(LONGEST_LOOK_AWAY, deadline_of(timeouts, alive, head) - now), head
  if dropped > 0 then
    wake_next(queue, timeouts, alive, channel, publish, now)
  end
  for i = 6, #ARGV do
    if ARGV[i] == head then
      reply[#reply + 1] = i - 5
    end
  end
end
if aliveFor ~= '0' and not has_ticket then
  local last = redis.call('LINDEX', queue, -1)
  local before = last and redis.call('ZSCORE', timeouts, last)
  redis.call('ZADD', timeouts, before and before + grace or term, owner)
  redis.call('RPUSH', queue, owner)
  redis.call('ZADD', alive, now + aliveFor, owner)
end
if aliveFor ~= '0' then
  keep_alive()
end
return reply
