-- A reading of the guard: the record, and the server's identity at the same instant.
-- KEYS: the record; the hash of short visits. ARGV[1]: the boot id of this machine (empty: do not look for visits).
-- Returns an array: INFO replication, or the error that refused INFO; desc, q, seal; what an earlier visit has left;
-- names; which set a change of masters has left (src/site/scripts/move.lua).
local record=redis.call('HMGET',KEYS[1],'desc','q','seal','names','left')
local left=record[5] and string.sub(record[5],1,16)==record[2] and string.sub(record[5],17)
local visit=ARGV[1]~='' and redis.call('HGET',KEYS[2],ARGV[1])
return {redis.pcall('INFO','replication'),record[1],record[2],record[3],visit,record[4],left}
