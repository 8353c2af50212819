-- What a client has and waits for, where the index of clients is on another server.
--
-- KEYS
--   client     hash  what the client tells, by name
-- ARGV
--   ttl        ms    for which it is believed
--   fields...  text  the names; and what they stand for:
--   values...  text
-- REPLY
--   1
-- INCLUDE shared/tell

describe(client, ttl, unpack(ARGV, 2))
return 1
