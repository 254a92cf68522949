-- Notes that this machine has seen a state that is not sealed yet, and when. So clients of one machine that live for
-- less than a guard time watch the state together.
-- KEYS: the record; the hash of short visits. ARGV: boot id; seal of the state; CLOCK_BOOTTIME and TIME in ms.
-- Returns 1: written; 0: another state, sealed meanwhile, or too many machines.
--:common
local state=string.sub(ARGV[2],18)
local m=redis.call('HMGET',KEYS[1],'q','seal')
if m[1]~=string.sub(state,18) or m[2]==ARGV[2] or other_server(string.sub(state,1,16)) then
return 0
end
if redis.call('HLEN',KEYS[2])>=16 and not redis.call('HGET',KEYS[2],ARGV[1]) then
return 0
end
redis.call('HSET',KEYS[2],ARGV[1],state..' '..ARGV[3]..' '..ARGV[4])
return 1
