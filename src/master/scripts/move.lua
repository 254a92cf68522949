-- Take a master from an old configuration to a new one, in two steps between which it serves neither.
-- KEYS[1] the meta hash; ARGV[1], ARGV[2] the two fingerprints, old and new; ARGV[3] a new quarantine id and, right
-- behind its 16 digits, the one that is to be there now; ARGV[4] what to do: 'leave', the first step; 'enter', the
-- second; 'look', neither.
-- 1: done; 2: it was done before; 0: the record is of a third configuration, or entered before it was left; text:
-- nothing was done, for this id is there. So what was sent before somebody else changed the record does nothing when
-- it arrives.
local old,new,step=ARGV[1],ARGV[2],ARGV[4]
local moving='moving '..old..' > '..new
local m=redis.call('HMGET',KEYS[1],'desc','from','q')
local desc=m[1] or ''
if desc~='' and desc~=new and desc~=moving and desc~='moving '..new..' > '..old and (desc~=old or step=='enter') then
return 0
end
if step=='look' then
return 1
end
if desc==new and (step=='leave' or m[2]==old) then
return 2
end
local q=m[3] or ''
if #q~=16 then
q=''
end
if q~=string.sub(ARGV[3],17) then
return q
end
redis.call('HSET',KEYS[1],'desc',step=='leave' and moving or new,'q',string.sub(ARGV[3],1,16),'from',old)
redis.call('HDEL',KEYS[1],'seal')
return 1
