-- Compare, then raise the expiry to max(PTTL, ttl); it is never lowered, and a key that is gone is never made.
-- KEYS[1] the key, ARGV[1] the value, ARGV[2] the ttl in ms. 1: ours; 0: gone or foreign.
-- A write of our own ends the tracking of a key: it is read once more, so that CLIENT CACHING ahead of this holds.
if redis.call('GET',KEYS[1])~=ARGV[1] then
return 0
end
if redis.call('PTTL',KEYS[1])<tonumber(ARGV[2]) then
redis.call('PEXPIRE',KEYS[1],ARGV[2])
redis.call('PTTL',KEYS[1])
end
return 1
