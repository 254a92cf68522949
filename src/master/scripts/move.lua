-- Take a master from an old configuration to a new one, in two steps between which it serves neither.
-- KEYS[1] the meta hash; ARGV[1], ARGV[2] the two fingerprints, old and new; ARGV[3] a new quarantine id; ARGV[4] what
-- to do: 'leave', the first step; 'enter', the second; 'look', neither.
-- 1: done; 2: it was done before; 0: the record is of a third configuration, or entered before it was left.
local old,new,step=ARGV[1],ARGV[2],ARGV[4]
local moving='moving '..old..' > '..new
local m=redis.call('HMGET',KEYS[1],'desc','from')
local desc=m[1] or ''
if desc~='' and desc~=new and desc~=moving and desc~='moving '..new..' > '..old and (desc~=old or step=='enter') then
return 0
end
if step=='look' then
return 1
end
if desc==new and (step=='leave' or m[2]==old) or desc==moving and step=='leave' then
return 2
end
redis.call('HSET',KEYS[1],'desc',step=='leave' and moving or new,'q',ARGV[3],'from',old)
redis.call('HDEL',KEYS[1],'seal')
return 1
