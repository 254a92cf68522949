-- release.lua for several names. MGET takes a key of another kind for one that is not there, so that none hides the others.
-- KEYS: the names, ARGV[1] the value. 1: it was ours, under any name, and is deleted; 0: gone or foreign.
local values=redis.call('MGET',unpack(KEYS))
local ours={}
for i=1,#KEYS do
if values[i]==ARGV[1] then
ours[#ours+1]=KEYS[i]
end
end
if #ours==0 then
return 0
end
redis.call('DEL',unpack(ours))
return 1
