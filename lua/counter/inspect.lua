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
-- INCLUDE shared/clock

local taken = redis.call('ZCARD', leases)
if redis.call('EXISTS', number) == 0 then
  return {}
end
-- Redis has no command that tells whether it can count with a text and writes nothing. A foreign text may be long; its first
-- 21 characters are enough.
local value = redis.call('GETRANGE', number, 0, 20)
local digits = value == '0' and value or string.match(value, '^%-?([1-9]%d*)$')
if not digits or #digits > 19 or #digits == 19 and digits > '9223372036854775807' then
  error('ERR value is not an integer or out of range', 0)
end
local ended = #redis.call('ZRANGE', leases, '-inf', server_time(), 'BYSCORE')
return {value, ended, taken - ended}
