--[[
Mistakes in scripts of the library. The first line of each has its name; the kind and the seed of the schedules that
find it, and whether their histories show it; and the scripts. The second line says what is wrong. What follows runs
instead of each command of the script, with `run`, `command`, and its words `key`, `first`, `second`, `...`; or before
the script, and may return in its place; or after it, with its `reply`.
]]

-- frees others | lock 4 history | plain/end
-- the release deletes the lock, whoever holds it
if command == 'HDEL' then return run('DEL', key) end

-- grants what is held | lock 1 history | plain/take
-- every call is granted the lock
if command == 'EXISTS' and key == KEYS[1] then return run('EXISTS', KEYS[2]) end

-- has no end | lock 6 | plain/take
-- the lock has no TTL
if command == 'PEXPIRE' then return 1 end

-- no tombstone | lock 2361 | plain/end
-- a call that was given up leaves no tombstone, so its late command takes the lock for nobody
if command == 'SET' and first ~= 1 then return end

-- takes after its end | lock 555 | plain/take
-- a late command of a call that was given up ignores its tombstone, and takes the lock for nobody
if command == 'EXISTS' then return run('EXISTS', key) end

-- ends nothing | lock 1 | plain/end
-- the lock of a grant that is over stays
if command == 'HDEL' then return 1 end

-- renews what is not there | lock 28 | plain/keep
-- the renewal does not ask who holds the lock, and says that all is well
if command == 'HEXISTS' then return 1 end

-- revives | lock 28 | plain/keep
-- the renewal brings back what was taken away
if command == 'HEXISTS' and run(command, ...) == 0 then run('HSET', key, first, '1'); return 1 end

-- renews nothing | lock 5 | plain/keep
-- the renewal does nothing, and says that all is well
if command == 'PEXPIRE' then return 1 end

-- is silent | lock 29 | plain/end plain/pass
-- a release is announced to nobody
if string.find(command, 'PUBLISH') then return 0 end

-- frees the outer hold | lock 1 | plain/keep
-- the unlock of a nested hold ends the outer one
if command == 'HSET' then return run('DEL', key) end

-- leases add up | red 832 | plain/keep
-- a nested call adds its lease to what is left
if command == 'PTTL' then return 0 end
if command == 'PEXPIRE' then return run('PEXPIRE', key, run('PTTL', key) + first) end

-- a nested call shortens | lock 1 | plain/keep
-- a nested call sets the TTL to its own lease
if command == 'PTTL' then return 0 end

-- is not reentrant | lock 23 | plain/keep
-- the owner is told that another has its own lock
--- after
reply = {-1}

-- forgets its release | multi 240 | plain/end
-- a release that is sent again is told that the lock was lost
if command == 'SET' and tostring(first) == '1' then return end

-- hands over to nobody | lock 1 | plain/pass
-- a release grants the lock to a wire id that nobody has
--- before
ARGV[2] = ARGV[2] .. '0'

-- tokens from one | fenced 55 | fenced/take fenced/pass
-- the counter of tokens starts from 1 if the server has lost it
if command == 'TIME' then return {0, 0} end

-- tokens that stay | fenced 1 history | fenced/take fenced/pass
-- the counter of tokens is read, but not raised
if command == 'INCR' and run('EXISTS', key) == 1 then return 2 ^ 53 end

-- tokens that lapse | fenced 2 | fenced/take fenced/pass
-- the counter of tokens ends with the lease
if command == 'TIME' then return {0, 0} end
if command == 'INCR' then local token = run('INCR', key); run('PEXPIRE', key, 1000); return token end

-- own counter | fenced 1 | fenced/take fenced/pass
-- the counter of tokens is one that Redisson does not know
if string.find(key or '', 'lock_token') then return run(command, key .. ':own', select(2, ...)) end

-- queues after its end | fair 8 | fair/take
-- a late command of a call that was given up ignores its tombstone, and queues for nobody
if command == 'EXISTS' and key ~= KEYS[1] then return 0 end

-- barges | fair 8 | fair/take
-- a call that finds the lock free takes it, even if there is a queue
if command == 'LINDEX' then return false end

-- the last comes first | fair 2 | fair/take
-- a waiter goes to the head of the queue
if command == 'RPUSH' then
  local others = run('LRANGE', key, 0, -1)
  run('DEL', key)
  run('RPUSH', ...)
  for _, other in ipairs(others) do run('RPUSH', key, other) end
  return #others + 1
end

-- stays in the queue | fair 2 | fair/end
-- a waiter that gives up keeps its place
if command == 'LLEN' then return 0 end

-- waits for the dead | fair 6 | fair/take fair/end
-- a dead waiter keeps its place for minutes
if command == 'ZSCORE' and key == KEYS[4] then return false end

-- believes the clients' clocks | fair 83 | fair/take fair/end
-- the clock of a client says which waiters are dead
if command == 'TIME' then
  local time, client = run('TIME'), ARGV[4] and string.find(ARGV[4], ':') and ARGV[4] or ARGV[1]
  return {time[1] + 40 * tonumber(string.sub(client, 1, 1), 16), time[2]}
end

-- reads next to a writer | readwrite 5 history | read/take
-- a reader checks whether the lock is held, but not in which mode
if command == 'HGET' and first == 'mode' then return run('HGET', ...) and 'read' end

-- writes next to readers | readwrite 2 history | write/take
-- a writer does not check whether somebody reads
if command == 'EXISTS' and key == KEYS[1] and run('HGET', key, 'mode') == 'read' then return 0 end

-- frees other readers | readwrite 1 | read-write/end
-- a reader that leaves is taken for the last one
if command == 'PEXPIRE' and key == KEYS[1] then return run('DEL', key) end

-- reads after its end | readwrite 36 | read/take
-- a late command of a reader that was given up ignores its tombstone, and reads for nobody
if command == 'EXISTS' and key ~= KEYS[1] then return 0 end

-- a reader that was | readwrite 113 | read-write/end
-- a reader whose lease is over still counts
if command == 'PTTL' and key ~= KEYS[1] then return math.max(90000, run('PTTL', key)) end

-- keeps dead readers | readwrite 21 | read-write/keep
-- the renewal of a reader renews all readers
--- before
for _, owner in ipairs(redis.call('HKEYS', KEYS[1])) do
redis.call('PEXPIRE', '{' .. KEYS[1] .. '}:' .. owner .. ':rwlock_timeout:1', ARGV[1])
end

-- a reader shortens | readwrite 352 | read/take
-- the lease of a reader replaces those of others
if command == 'PTTL' and key == KEYS[1] then return 0 end

-- a read cuts the write | readwrite 116 | read-write/keep
-- a nested read of a writer, given back, leaves the lock a second
if command == 'HDEL' then run('PEXPIRE', key, 1000) end

-- forgets the downgrade | readwrite 27 | write/downgrade
-- the last write hold deletes the lock, even if its owner reads
if command == 'HSET' then return run('DEL', key) end

-- a writer that was | readwrite 12 | write/take
-- the sign of a waiting writer outlives its writer
if command == 'ZADD' then return run('ZADD', key, first + 9e5, second) end
if command == 'PEXPIRE' and key == KEYS[4] then return run('PEXPIRE', key, 900000) end

-- a permit too many | semaphore 2 history | semaphore/acquire
-- a semaphore grants one permit more than it has
if command == 'GET' and key == KEYS[1] then return tostring((run('GET', key) or 0) + 1) end

-- takes again | semaphore 11 | semaphore/acquire
-- a call that is sent again takes its permits twice
if command == 'SET' and key ~= KEYS[1] then return end

-- gives again | semaphore 26 | semaphore/release
-- a release that is sent again gives back twice
if command == 'SET' and key ~= KEYS[1] then return end

-- keeps what nobody wants | semaphore 11 | semaphore/undo
-- a call that gave up keeps the permits that it was granted meanwhile
if command == 'INCRBY' then return 0 end

-- gives in silence | semaphore 204 | semaphore/release
-- free permits are announced to nobody
if string.find(command, 'PUBLISH') then return 0 end

-- many count as one | permits 48 | permits/acquire permits/release permits/set permits/update
-- permits that lapse together come back as one
if command == 'INCRBY' and key == KEYS[1] then return run('INCRBY', key, 1) end

-- a permit is taken again | permits 4 | permits/acquire
-- a call that is sent again takes a permit twice
if command == 'ZSCORE' then return false end

-- what lapsed comes back | permits 4 | permits/release
-- a permit that has lapsed is given back once more
if command == 'ZSCORE' and not run('ZSCORE', ...) then run('INCRBY', KEYS[1], 1) end

-- forgets what came back | permits 10 | permits/release
-- a release that is sent again finds no such permit
if command == 'SET' and key ~= KEYS[1] then return end

-- keeps nothing | permits 5 | permits/renew
-- the watchdog renews no permit, and believes that it did
if command == 'ZADD' then return 0 end

-- a hasty clock | permits 5 | permits/acquire
-- permits lapse by a clock that is a minute ahead
if command == 'TIME' then local time = run('TIME'); return {time[1] + 60, time[2]} end

-- comes back in silence | permits 65 | permits/release
-- a permit that comes back is announced to nobody
if string.find(command, 'PUBLISH') then return 0 end
