-- Admit this master's state: write the seal, if the quarantine id is still the one that was watched.
-- KEYS[1] the meta hash, ARGV[1] the quarantine id, ARGV[2] the seal. 1: sealed; 0: another state.
if redis.call('HGET',KEYS[1],'q')~=ARGV[1] then
return 0
end
redis.call('HSET',KEYS[1],'seal',ARGV[2])
return 1
