-- Compare-and-delete (Redlock page, "Correct implementation with a single instance").
-- KEYS[1] the key, ARGV[1] the value. 1: it was ours and is deleted; 0: gone or foreign.
-- No shebang: with one, Redis would refuse the script at maxmemory. Reads before it writes.
if redis.call('GET',KEYS[1])==ARGV[1] then
return redis.call('DEL',KEYS[1])
end
return 0
