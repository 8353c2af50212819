-- What a client has and waits for, so that others can see whose that is; and that there is this client.
--
-- KEYS
--   client  hash  what the client tells, by the names of the arguments
--   index   zset  client id -> ms of the server's clock until which it counts as there
-- ARGV
--   id      text  of the client
--   ttl     ms    for which it is believed
--   label   text  what people call the process
--   host    text
--   pid     text
--   since   text  epoch ms by the client's clock
--   told    text  likewise: when it tells that
--   holds   text  JSON: [key, kind, owner id, epoch ms, owner], of each
--   waits   text  of the same form
-- REPLY
--   1
-- INCLUDE shared/clock
-- INCLUDE shared/tell_presence

local client, index = KEYS[1], KEYS[2]
local id, ttl = ARGV[1], ARGV[2]
local label, host, pid, since = ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local told, holds, waits = ARGV[7], ARGV[8], ARGV[9]

tell(client, ttl, label, host, pid, since, told, holds, waits)
enlist(index, server_time(), ttl, id)
return 1
