-- Says which commands of the scripts the server lacks, or the user may not call. It tries each on a key that holds a
-- text, so that a command for another type fails and changes nothing. The key is gone afterwards.
--
-- KEYS
--   probe  string  of a name that nobody uses
-- REPLY
--   {name...}  commands that are refused

local refused = {}

local SIGNS = {"can't run this command", 'no permissions to run', 'Unknown Redis command'}

local function check(name, reply)
  local why = type(reply) == 'table' and reply.err or ''
  for _, sign in ipairs(SIGNS) do
    if string.find(why, sign, 1, true) then
      refused[#refused + 1] = name
    end
  end
end

-- SET comes first, and with a TTL: without this key the next commands would make keys of other types, without TTL.
check('set', redis.pcall('SET', probe, 'x', 'PX', 1000))
if #refused > 0 then
  return refused
end
check('time', redis.pcall('TIME'))

local TRIED = 'pexpire 1000,pttl,exists,type,get,getrange 0 0,incr,incrby 1,decrby 1,'
  .. 'hset a 1,hget a,hgetall,hkeys,hlen,hexists a,hrandfield,hdel a,'
  .. 'zadd 1 a,zcard,zscore a,zincrby 1 a,zrange 0 0,zrevrange 0 0,zrem a,zremrangebyscore 0 0,'
  .. 'rpush a,lpop,ltrim 0 0,llen,lindex 0,lrange 0 0,del'
for call in string.gmatch(TRIED, '[^,]+') do
  local words = {}
  for word in string.gmatch(call, '%S+') do
    words[#words + 1] = word
  end
  local name = table.remove(words, 1)
  check(name, redis.pcall(name, probe, unpack(words)))
end

return refused
