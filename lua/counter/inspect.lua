-- What the keys of a semaphore, permits or a latch say. The script writes nothing, so permits whose leases have ended
-- are still among those that were taken: the next call on them takes them back. Other data is refused by the error of
-- Redis.
--
-- KEYS
--   number  string  free permits, or a latch's count
--   leases  zset    permit id (16 bytes) -> ms of the server's clock at which its lease ends
-- REPLY
--   {n, ended, out}  the number; permits whose leases have ended; permits that are out
--   {}               there is no such key
-- FLAGS no-writes
-- INCLUDE shared/clock
-- INCLUDE shared/is_integer

local number, leases = KEYS[1], KEYS[2]

if redis.call('EXISTS', number) == 0 then
  return {}
end
local value = redis.call('GETRANGE', number, 0, 20)
if not is_integer(value) then
  error('ERR value is not an integer or out of range', 0)
end
local taken = redis.call('ZCARD', leases)
local ended = #redis.call('ZRANGE', leases, '-inf', server_time(), 'BYSCORE')
return {value, ended, taken - ended}
