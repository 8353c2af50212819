-- The number of a semaphore or latch. This is a script, so that the number is read from the master.
--
-- KEYS
--   number  string  free permits, or a latch's count
-- REPLY
--   n       the number; 0 without one
-- INCLUDE shared/counts

local number = KEYS[1]

return number_in(number)
