-- Whether a call comes later than it may, by the server's clock: by then its marker may have lapsed, and it would count
-- a second time. '0' is never too late.
local function too_late(latest)
  return latest ~= '0' and redis.call('TIME')[1] * 1000 > tonumber(latest)
end

-- The word on a call, and the time by the server's clock, from which its next calls learn until when they may be run.
local function answer(word)
  return {word, tonumber(redis.call('TIME')[1])}
end
