-- Store a token for names that are held, where no counter is as large already, while the guard's state still stands.
-- KEYS: the names, then the guard's record, then the counters. ARGV: value, seal (empty: there is no guard), token.
-- 1: stored; 0: a name is gone or foreign, or a known counter is not smaller; -1: another state.
--:common
local n=#KEYS-2
if ARGV[2]~='' and other_state(KEYS[n+1],ARGV[2]) then
return -1
end
for i=1,n do
if redis.call('GET',KEYS[i])~=ARGV[1] then
return 0
end
end
local function below(a,b)
return #a<#b or (#a==#b and a<b)
end
for i=1,n do
local v=redis.call('HGET',KEYS[n+2],KEYS[i])
local token,seal=string.match(v or '','^(%d+) (.*)$')
if seal==ARGV[2] and not below(token,ARGV[3]) then
return 0
end
end
for i=1,n do
redis.call('HSET',KEYS[n+2],KEYS[i],ARGV[3]..' '..ARGV[2])
end
return 1
