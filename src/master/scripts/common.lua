-- This text is put in front of each script whose comments end with the line "--:common".
-- Has the server become another one since the guard read its identity? The function compares role and replication id.
-- Only an INFO inside the script reads both at the instant at which the script writes. A replication id of zeros says
-- that this server refuses INFO (guard "weak"): then there is nothing to compare.
local function other_server(replid)
if replid=='0000000000000000' then
return false
end
local info=redis.call('INFO','replication')
return not (string.find(info,'role:master',1,true) and string.find(info,'master_replid:'..replid,1,true))
end
-- Is the server in another state than the state that the guard admitted? The seal is "run id:replication id:quarantine
-- id". The seal must equal the record's seal, and its replication id must be the server's own. The record alone is not
-- enough: it is ordinary data, and a replica's copy brings an old record back.
local function other_state(record,seal)
return redis.call('HGET',record,'seal')~=seal or other_server(string.sub(seal,18,33))
end
