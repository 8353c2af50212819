-- What a client has and waits for, where the index is on another server.
--
-- KEYS
--   client  hash  what the client tells, by the names of the arguments
-- ARGV
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
-- INCLUDE shared/tell_presence

local client = KEYS[1]
local ttl = ARGV[1]
local label, host, pid, since = ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local told, holds, waits = ARGV[6], ARGV[7], ARGV[8]

tell(client, ttl, label, host, pid, since, told, holds, waits)
return 1
