-- What a client has and waits for, so that others can see whose that is; and that there is this client.
--
-- KEYS
--   client     hash  what the client tells, by name
--   index      zset  client id -> ms of the server's clock until which it counts as there
-- ARGV
--   id         text  of the client
--   ttl        ms    for which it is believed
--   fields...  text  label, host, pid; since in epoch ms by the client's clock; holds and waits as JSON of
--   values...  text  [key, kind, owner id, epoch ms] each, of a wait more
-- REPLY
--   1
-- INCLUDE shared/tell

describe(client, ttl, unpack(ARGV, 3))
enlist(index, id, ttl)
return 1
