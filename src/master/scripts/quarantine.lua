-- Begin a new state: write the fingerprint and a new quarantine id, and drop the seal, if the record is still as it was
-- read. KEYS[1] the meta hash; ARGV[1], ARGV[2] the fingerprint and quarantine id as read (empty: absent, quarantine id
-- '*': any); ARGV[3], ARGV[4] the new ones. 1: done; 0: the record is another one.
local m=redis.call('HMGET',KEYS[1],'desc','q')
if (m[1] or '')~=ARGV[1] or (ARGV[2]~='*' and (m[2] or '')~=ARGV[2]) then
return 0
end
redis.call('HSET',KEYS[1],'desc',ARGV[3],'q',ARGV[4])
redis.call('HDEL',KEYS[1],'seal')
return 1
