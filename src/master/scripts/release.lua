-- Compares, and deletes the names that have our value (Redlock page, "Correct implementation with a single instance").
-- KEYS: the names. ARGV[1]: the value.
-- Returns 1: at least one name was ours, and all of ours are deleted; 0: all names are gone or foreign.
-- A key of another type is foreign, and must not keep the names behind it from being deleted. Any other error ends the
-- script. There is no shebang: with one, Redis would refuse the script at maxmemory.
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
