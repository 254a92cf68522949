-- Stores a token for names that we hold, if every known counter is smaller, and the guard's state still stands.
-- KEYS: the names; the guard's record; the counters. ARGV: value; seal (empty: no guard); token.
-- Returns 1: stored; 0: a name is gone or foreign, or a known counter is not smaller; -1: another state.
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
