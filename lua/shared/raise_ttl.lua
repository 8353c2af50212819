-- Sets a TTL, but never lowers it. The text of ttl goes to Redis as it came: Lua would write large numbers as 9e+15.
local function raise_ttl(key, ttl)
  if redis.call('PTTL', key) < tonumber(ttl) then
    redis.call('PEXPIRE', key, ttl)
  end
end
