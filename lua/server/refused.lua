-- Which commands of the scripts the user may not call: each is tried on a key that holds a text, so that what is meant for
-- another type fails and changes nothing. The key is gone afterwards.
--
-- KEYS
--   probe  string  of a name that nobody uses
-- REPLY
--   {name...}  commands that are refused

local probe = KEYS[1]

local refused = {}

local function check(name, reply)
  local why = type(reply) == 'table' and reply.err or ''
  if string.find(why, "can't run this command", 1, true) or string.find(why, 'no permissions to run', 1, true) then
    refused[#refused + 1] = name
  end
end

-- SET comes first, and with a TTL: without this key the next commands would make keys of other types, without TTL.
check('set', redis.pcall('SET', probe, 'x', 'PX', 1000))
if #refused > 0 then
  return refused
end

check('pexpire', redis.pcall('PEXPIRE', probe, 1000))
check('pttl', redis.pcall('PTTL', probe))
check('exists', redis.pcall('EXISTS', probe))
check('type', redis.pcall('TYPE', probe))
check('time', redis.pcall('TIME'))
check('get', redis.pcall('GET', probe))
check('getrange', redis.pcall('GETRANGE', probe, 0, 0))
check('incr', redis.pcall('INCR', probe))
check('incrby', redis.pcall('INCRBY', probe, 1))
check('decrby', redis.pcall('DECRBY', probe, 1))
check('hset', redis.pcall('HSET', probe, 'a', 1))
check('hget', redis.pcall('HGET', probe, 'a'))
check('hgetall', redis.pcall('HGETALL', probe))
check('hkeys', redis.pcall('HKEYS', probe))
check('hlen', redis.pcall('HLEN', probe))
check('hexists', redis.pcall('HEXISTS', probe, 'a'))
check('hrandfield', redis.pcall('HRANDFIELD', probe))
check('hdel', redis.pcall('HDEL', probe, 'a'))
check('zadd', redis.pcall('ZADD', probe, 1, 'a'))
check('zcard', redis.pcall('ZCARD', probe))
check('zscore', redis.pcall('ZSCORE', probe, 'a'))
check('zincrby', redis.pcall('ZINCRBY', probe, 1, 'a'))
check('zrange', redis.pcall('ZRANGE', probe, 0, 0))
check('zrevrange', redis.pcall('ZREVRANGE', probe, 0, 0))
check('zrem', redis.pcall('ZREM', probe, 'a'))
check('zremrangebyscore', redis.pcall('ZREMRANGEBYSCORE', probe, 0, 0))
check('rpush', redis.pcall('RPUSH', probe, 'a'))
check('lpop', redis.pcall('LPOP', probe))
check('ltrim', redis.pcall('LTRIM', probe, 0, 0))
check('llen', redis.pcall('LLEN', probe))
check('lindex', redis.pcall('LINDEX', probe, 0))
check('lrange', redis.pcall('LRANGE', probe, 0, 0))
check('del', redis.pcall('DEL', probe))

return refused
