-- The text that stands in front of each script whose comments end with the line "--:common".
-- Has the server become another one since the guard read it? Its role and its replication id are compared, and only an
-- INFO inside the script reads them at the very instant at which the script writes. A replication id of zeros says that
-- this server's INFO cannot be had (guard "weak"): then there is nothing to compare.
local function other_server(replid)
if replid=='0000000000000000' then
return false
end
local info=redis.call('INFO','replication')
return not (string.find(info,'role:master',1,true) and string.find(info,'master_replid:'..replid,1,true))
end
-- Is the server in another state than the one that the guard admitted? The seal is "run id:replication id:quarantine
-- id". It is compared with the record's, and its replication id with the server's own: the record is ordinary data, and
-- a replica's copy brings it back.
local function other_state(record,seal)
return redis.call('HGET',record,'seal')~=seal or other_server(string.sub(seal,18,33))
end
