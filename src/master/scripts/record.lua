-- Writes the guard's record: seals the state that was watched, or begins a new state. Writes only if record and server
-- are still what they were when they were read. Both kinds of writes make earlier visits void.
-- KEYS: the record; the hash of short visits.
-- ARGV, as read: fingerprint (empty: absent); quarantine id (empty: absent; '*': any); replication id.
-- ARGV, to be written: fingerprint; quarantine id; seal (empty: none); the masters' names.
-- Returns 1: done; 0: another state.
--:common
local m=redis.call('HMGET',KEYS[1],'desc','q')
if (m[1] or '')~=ARGV[1] or (ARGV[2]~='*' and (m[2] or '')~=ARGV[2]) or other_server(ARGV[3]) then
return 0
end
redis.call('HSET',KEYS[1],'desc',ARGV[4],'q',ARGV[5],'names',ARGV[7])
if ARGV[6]=='' then
redis.call('HDEL',KEYS[1],'seal')
else
redis.call('HSET',KEYS[1],'seal',ARGV[6])
end
redis.call('DEL',KEYS[2])
return 1
