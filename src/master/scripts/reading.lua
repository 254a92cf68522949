-- A reading of the guard: the record, and what the server says of itself at the same instant.
-- KEYS: the record; the hash of short visits. ARGV[1]: the boot id of this machine (empty: do not look for visits).
-- With the record alone, ARGV[1] is the tag of an earlier reading.
-- Returns 1 if all but visits is as it was in that reading. Otherwise an array: 10 values of INFO, the first of which
-- is the error where INFO is refused; desc, q, seal, names; which set a change of masters has left
-- (src/site/scripts/move.lua); what an earlier visit has left; the tag. A value that is not there is null.
-- A string of Lua has no field `err`. The libraries cjson and redis.sha1hex() are part of each server's interpreter.
local record=redis.call('HMGET',KEYS[1],'desc','q','seal','names','left')
local info=redis.pcall('INFO')
local all={}
for name in ('run_id master_replid role connected_slaves repl_backlog_active redis_mode server_mode '..
'maxmemory maxmemory_policy evicted_keys'):gmatch('%S+') do
local at=not info.err and info:find('\n'..name..':',1,true)
all[#all+1]=at and info:sub(at+#name+2,info:find('\r',at,true)-1) or false
end
for i=1,5 do
all[10+i]=record[i]
end
local tag=redis.sha1hex(cjson.encode(all)):sub(1,16)
if not KEYS[2] and ARGV[1]==tag then
return 1
end
if info.err then
all[1]=info
end
all[15]=record[5] and record[5]:sub(1,16)==record[2] and record[5]:sub(17)
all[16]=KEYS[2]~=nil and ARGV[1]~='' and redis.call('HGET',KEYS[2],ARGV[1])
all[17]=tag
return all
