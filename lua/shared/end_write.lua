-- Ends the write side: if the writer has read holds left, the lock is theirs from now on; otherwise the lock is
-- deleted. `longest`: ms until the longest of these read holds ends.
local function end_write(lock, field, longest)
  if longest > 0 then
    redis.call('HDEL', lock, field)
    redis.call('HSET', lock, 'mode', 'read')
    redis.call('PEXPIRE', lock, longest)
  else
    redis.call('DEL', lock)
  end
end
