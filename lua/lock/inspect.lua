-- What a lock's keys say: of every kind, since only they know which it is. Other data is refused.
--
-- KEYS
--   lock     hash    owner -> hold count; of a read-write lock also "mode"
--   queue    list    waiters of a fair lock in their order
--   counter  string  the last fencing token
-- REPLY
--   {pttl, fenced, mode, {waiter, ...}, {field, count, ms, ...}}  -2 and no field: free
--                                                                 fenced: 1 or 0; mode: "" for none; ms: of a read hold
-- INCLUDE shared/foreign
-- INCLUDE shared/readers

-- Checked first, so that a large hash of another program is not read.
refuse_foreign(lock)
local fields = redis.call('HGETALL', lock)
local mode = redis.call('HGET', lock, 'mode')
local holders, vain = {}, 0
for i = 1, #fields, 2 do
  local field, count = fields[i], fields[i + 1]
  if not is_lock_field(mode, field, count) then
    refuse()
  end
  if field ~= 'mode' then
    local left
    left, vain = reader_left(lock, field, is_shared(mode) and count, vain)
    holders[#holders + 1] = field
    holders[#holders + 1] = count
    holders[#holders + 1] = left
  end
end
local waiters = redis.call('TYPE', queue).ok == 'list' and redis.call('LRANGE', queue, 0, -1) or {}
return {redis.call('PTTL', lock), redis.call('EXISTS', counter), mode or '', waiters, holders}
