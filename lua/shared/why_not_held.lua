-- Why an owner has no field in a lock: -1 if another holds it, 0 if nobody does.
local function why_not_held(lock)
  return -redis.call('EXISTS', lock)
end
