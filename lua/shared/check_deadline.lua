-- Whether a call may still be run, by the server's clock. After `latest` its marker may have lapsed, and the call would
-- count a second time. '0' is without limit.
local function check_deadline(latest)
  return latest == '0' or redis.call('TIME')[1] * 1000 <= tonumber(latest)
end

-- The outcome of a call, and the server's time in seconds: the client derives `latest` of its next calls from it.
local function answer(outcome)
  return {outcome, tonumber(redis.call('TIME')[1])}
end
