-- Write the guard's record: seal the state that was watched, or begin a new one; if record and server are still what
-- they were when they were read. Either makes earlier visits void.
-- KEYS: the record, then the hash of short visits. ARGV: fingerprint and quarantine id as read (empty: absent; quarantine
-- id '*': any), replication id as read; fingerprint, quarantine id and seal to be written (seal empty: none).
-- 1: done; 0: another state.
--:common
local m=redis.call('HMGET',KEYS[1],'desc','q')
if (m[1] or '')~=ARGV[1] or (ARGV[2]~='*' and (m[2] or '')~=ARGV[2]) or other_server(ARGV[3]) then
return 0
end
redis.call('HSET',KEYS[1],'desc',ARGV[4],'q',ARGV[5])
if ARGV[6]=='' then
redis.call('HDEL',KEYS[1],'seal')
else
redis.call('HSET',KEYS[1],'seal',ARGV[6])
end
redis.call('DEL',KEYS[2])
return 1
