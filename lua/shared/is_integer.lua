-- Whether Redis can count with a text: Redis has no command that tells so and writes nothing. A foreign text may be
-- long; its first 21 characters are enough.
local function is_integer(text)
  local digits = text == '0' and text or string.match(text, '^%-?([1-9]%d*)$')
  return digits and (#digits < 19 or #digits == 19 and digits <= '9223372036854775807')
end
