-- Compare-and-delete of all names (Redlock page, "Correct implementation with a single instance").
-- KEYS: the names, ARGV[1] the value. 1: a name was ours, and all that were are deleted; 0: all are gone or foreign.
-- A key of another type is foreign: it must not hide the names behind it. Any other error ends the script.
-- No shebang: with one, Redis would refuse the script at maxmemory. Reads before it writes.
local ours=0
for i=1,#KEYS do
local value=redis.pcall('GET',KEYS[i])
if value==ARGV[1] then
ours=redis.call('DEL',KEYS[i])
elseif type(value)=='table' and not string.find(value.err,'WRONGTYPE',1,true) then
return value
end
end
return ours
