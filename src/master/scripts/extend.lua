-- Compare, then raise the expiry of all names to max(PTTL, ttl). The expiry is never lowered, and a key that is gone is
-- never made. With a seal also: only while the guard's state still stands.
-- KEYS: the names, then with a seal the guard's record. ARGV: value, ttl in ms, seal.
-- 1: ours; 0: a name is gone or foreign; -1: another state.
-- A write of our own ends the tracking of a key. Each key is read once more, so that CLIENT CACHING ahead of this holds.
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
