--[[
Mistakes in the scripts of monotone holds. The first line of each has its name, the kind of lock, and the scripts; what stands
there, and after `---` what stands there instead. At the end: mistakes in the rules of the clients.
]]

-- TAKE grants what is held | plain | plain/take
'EXISTS', lock, tombstone) == 0
---
'EXISTS', tombstone) == 0

-- TAKE ignores its tombstone | plain | plain/take
'EXISTS', lock, tombstone) == 0
---
'EXISTS', lock) == 0

-- TAKE sets no TTL | plain | plain/take
redis.pcall('PEXPIRE', lock, lease)
---
1

-- a repeated TAKE raises nothing | plain | plain/take
if redis.call('PTTL', lock) < tonumber(lease) then
---
if false then

-- KEEP lowers the TTL | plain | plain/keep
if redis.call('PTTL', lock) < tonumber(lease) then
---
if true then

-- KEEP raises nothing | plain | plain/keep
if redis.call('PTTL', lock) < tonumber(lease) then
---
if false then

-- KEEP creates | plain | plain/keep
redis.pcall('HEXISTS', lock, owner) == 1
---
redis.call('HSET', lock, owner, '1') >= 0

-- KEEP says that all is well | plain | plain/keep
replies[i] = -redis.call('EXISTS', lock)
---
replies[i] = 1

-- END leaves no tombstone | plain | plain/end
redis.call('SET', tombstone, found + 0, 'PX', ttl)
---

-- a repeated END tells what it finds itself | plain | plain/end
return before > 0 and before or math.min(before, found)
---
return found

-- END frees whoever holds | plain | plain/end
remove_field(lock, ARGV[i])
---
redis.pcall('DEL', lock)

-- END tells nobody | plain | plain/end
hear(publish, channel, '0') end
---
0 end

-- PASS ignores the successor's tombstone | plain | plain/pass
'EXISTS', lock, successorTombstone)
---
'EXISTS', lock)

-- PASS leaves no tombstone | plain | plain/pass
bury(tombstone, 1, tombstoneTtl)
---

-- a repeated PASS grants what it did not | plain | plain/pass
has_lock(lock, successor, lease)}
---
1}

-- FORCE leaves no tombstones | plain | plain/force
redis.call('SET', tombstones .. owner, '0', 'PX', tombstoneTtl)
---

-- FORCE strikes again | plain | plain/force
if before then
---
if false then

-- tokens stay | fenced | fenced/take fenced/pass
redis.call('INCR', counter)
---
tonumber(redis.call('GET', counter) or redis.call('INCR', counter)) + 2 ^ 51

-- tokens begin anew | fenced | fenced/take fenced/pass
if token < floor then
---
if false then

-- a fair TAKE ignores its tombstone | fair | fair/take
if redis.call('EXISTS', tombstone) == 1 then
---
if false then

-- a fair TAKE barges | fair | fair/take
(not head or head == owner)
---
true

-- the last comes first | fair | fair/take
redis.call('RPUSH', queue, owner)
---
local others = redis.call('LRANGE', queue, 0, -1)
redis.call('DEL', queue)
redis.call('RPUSH', queue, owner)
for _, other in ipairs(others) do
redis.call('RPUSH', queue, other) end

-- END leaves the ticket | fair | fair/end
withdraw(gone)
---

-- a reader reads next to a writer | readwrite | read/take
if mode ~= 'read' then
---
if false then

-- a read TAKE ignores its tombstone | readwrite | read/take
if redis.call('EXISTS', tombstone) == 1 then
---
if false then

-- a reader does not keep the lock | readwrite | read/take
if redis.call('PTTL', lock) < tonumber(lease) then
---
if false then

-- a writer writes next to readers | readwrite | write/take
if redis.call('EXISTS', lock) == 0 then
---
if redis.call('HGET', lock, 'mode') ~= 'write' then

-- a write TAKE ignores the end of its side | readwrite | write/take
'EXISTS', tombstone, sideTombstone)
---
'EXISTS', tombstone)

-- KEEP counts a late 0 | readwrite | read-write/keep
and reads ~= '0' then
---
then

-- KEEP overlooks what is gone | readwrite | read-write/keep
replies[i] = -redis.call('EXISTS', lock)
---
replies[i] = 3

-- END overlooks a reader that has lapsed | readwrite | read-write/end
term == -2 and 0 or 1
---
1

-- END leaves no tombstone of a side | readwrite | read-write/end
redis.call('SET', tombstone, found + 0, 'PX', ttl)
---

-- END takes every reader for the last | readwrite | read-write/end
local longest = longest_reader(lock)
---
local longest = 0

-- END leaves the reader | readwrite | read-write/end
remove_field(lock, owner)
---
false

-- END leaves the waiting writer | readwrite | read-write/end
redis.call('ZREM', writers, owner)
---
0

-- END announces a writer that has left | readwrite | read-write/end
redis.call('EXISTS', nextTombstone) == 0
---
true

-- a downgrade needs its read | readwrite | write/downgrade
redis.call('HSET', lock, 'mode'
---
if redis.call('HEXISTS', lock, owner) == 0 then
redis.call('DEL', lock)
return {0, 2} end
redis.call('HSET', lock, 'mode'

-- a downgrade leaves no tombstone | readwrite | write/downgrade
bury(sideTombstone, 2, tombstoneTtl)
---

-- a downgrade cuts the lease | readwrite | write/downgrade
math.max(redis.call('PTTL', lock), tonumber(left))
---
'1'

-- a downgrade tells nobody | readwrite | write/downgrade
hear(publish, channel, '1'), 2
---
0, 2

-- the last reader tells nobody | readwrite | read-write/end
hear(publish, channel, '0')
---
0

-- FORCE leaves no tombstone of the write side | readwrite | write/force
redis.call('SET', tombstones .. owner, '0', 'PX', tombstoneTtl)
---

-- FORCE leaves no tombstones of readers | readwrite | read/force
redis.call('SET', tombstones .. owner, '0', 'PX', tombstoneTtl)
---

-- PASS ignores the end of a writer | readwrite | write/pass
redis.call('EXISTS', successorTombstone, successorSide) == 0
---
true

-- has two grants of a lock | readwrite
-- an id that re-entered is not ended | fair
-- a call that was given up is not ended | plain
-- what is lost is not ended | plain
-- a late grant ends a live hold | plain
-- a late answer counts from now | plain
-- deadlines count from the answer | plain
-- believes answers after the deadline | plain
-- believes a refusal by its own owner | plain
-- counts at the answer | plain
-- does not wait for its END | plain
-- forgets what it forced | plain
-- sleeps as long as the lock lasts | plain
-- who leaves the line tells nobody | plain
-- any side is as good | readwrite
-- a nested read is a TAKE | readwrite
-- a group lasts as long as its best seat | red
-- a silent seat is not ended | red
-- a lost round ends what its owner had | red
