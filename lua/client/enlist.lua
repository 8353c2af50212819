-- That there is this client.
--
-- KEYS
--   index  zset  client id -> ms of the server's clock until which it counts as there
-- ARGV
--   id     text  of the client
--   ttl    ms    for which it is believed
-- REPLY
--   1
-- INCLUDE shared/tell

enlist(index, id, ttl)
return 1
