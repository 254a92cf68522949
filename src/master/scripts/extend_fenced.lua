-- extend.lua for all names or none, where the guard's seal is still the one that the names were taken under.
-- KEYS: the names, then the guard's record. ARGV: value, ttl in ms, seal (empty: none is kept).
-- 1: ours; 0: gone or foreign; -1: another seal. Read once more behind the write, as in extend.lua.
local n=#KEYS-1
for i=1,n do
if redis.call('GET',KEYS[i])~=ARGV[1] then
return 0
end
end
if ARGV[3]~='' and redis.call('HGET',KEYS[n+1],'seal')~=ARGV[3] then
return -1
end
for i=1,n do
if redis.call('PTTL',KEYS[i])<tonumber(ARGV[2]) then
redis.call('PEXPIRE',KEYS[i],ARGV[2])
redis.call('PTTL',KEYS[i])
end
end
return 1
