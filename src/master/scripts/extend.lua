-- Compares the value, and then raises the expiry of all names to max(PTTL, ttl). An expiry is never lowered, and a
-- missing key is never created. With a seal the script does so only if the guard's state still stands.
-- KEYS: the names; with a seal also the guard's record. ARGV: value; ttl in ms; with a guard the seal.
-- Returns 1: all names are ours; 0: a name is gone or foreign; -1: another state.
-- A write of our own ends the tracking of a key. So each key is read again after the write, and CLIENT CACHING ahead of
-- the script keeps its effect.
--:common
local n=#KEYS
if ARGV[3] then
n=n-1
if other_state(KEYS[n+1],ARGV[3]) then
return -1
end
end
for i=1,n do
if redis.call('GET',KEYS[i])~=ARGV[1] then
return 0
end
end
for i=1,n do
if redis.call('PTTL',KEYS[i])<tonumber(ARGV[2]) then
redis.call('PEXPIRE',KEYS[i],ARGV[2])
redis.call('PTTL',KEYS[i])
end
end
return 1
