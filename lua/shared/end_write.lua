-- Ends the write side: with read holds of the writer left the lock is theirs from now on, else it is deleted.
-- `longest`: ms that the longest of them has to go.
local function end_write(lock, field, longest)
  if longest > 0 then
    redis.call('HDEL', lock, field)
    redis.call('HSET', lock, 'mode', 'read')
    redis.call('PEXPIRE', lock, longest)
  else
    redis.call('DEL', lock)
  end
end
