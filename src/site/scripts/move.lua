-- Takes a master from an old configuration to a new one, in two steps. Between the steps the master serves neither.
-- KEYS: the record; the hash of short visits.
-- ARGV[1], ARGV[2]: the old and the new fingerprint.
-- ARGV[3]: a new quarantine id of 16 digits and, right behind it, the quarantine id that must be in the record now.
-- ARGV[4]: 'mark' is the first step; 'enter' is the second step, only after the first; 'leave' says that the change is
-- done, on masters that stay marked and on those that were entered; 'look' writes nothing.
-- ARGV[5], ARGV[6]: who does it; the masters' names, of both sets for 'mark', of the new set for 'enter'.
-- If the record has another id, or belongs to a third configuration, nothing is written. So a script that arrives after
-- somebody else changed the record does nothing.
-- The field 'left' is a quarantine id and, right behind it, "left OLD": the change may still fail; or "left OLD > NEW
-- SECONDS": it is done, since then. It is void beside another quarantine id: 0.3 keeps a field that it does not know.
-- Returns what the record says now: a letter, and the quarantine id. n: no record; o: old; w: new; m: marked by this
-- change; b: marked by the opposite change; t: a third configuration; x: m, but the server's data have come from
-- another server since.
local old,new,step=ARGV[1],ARGV[2],ARGV[4]
local m=redis.call('HMGET',KEYS[1],'desc','q','at')
local q=m[2] or ''
if #q~=16 then
q=''
end
local letters={['']='n',[old]='o',[new]='w',['moving '..old..' > '..new]='m',['moving '..new..' > '..old]='b',
['left '..old..' > '..new]='m',['left '..new..' > '..old]='b'}
local is=letters[m[1] or ''] or 't'
-- The replication id changes with every new line of data, also on a connection that stays.
local info=redis.pcall('INFO','replication')
local at=type(info)=='string' and string.match(info,'master_replid:(%x+)') or ''
if is=='m' and m[3] and m[3]~=at then
is='x'
end
local time=redis.call('TIME')
local id=string.sub(ARGV[3],1,16)
local allowed=step=='mark' and is~='t' and not (is=='m' and q==id)
or (step=='enter' and is=='m' or step=='leave' and (is=='m' or is=='w')) and q~=''
if q~=string.sub(ARGV[3],17) or not allowed then
return is..q
end
if step=='leave' then
local left='left '..old..' > '..new
redis.call('HSET',KEYS[1],'desc',is=='m' and left or new,'left',q..left..' '..time[1])
return is..q
end
if step=='mark' then
is='m'
redis.call('HSET',KEYS[1],'desc','moving '..old..' > '..new,'q',id,'at',at,'by',ARGV[5],'begun',time[1],'names',ARGV[6])
redis.call('HDEL',KEYS[1],'seal','from','left')
else
is='w'
redis.call('HSET',KEYS[1],'desc',new,'q',id,'names',ARGV[6],'left',id..'left '..old)
redis.call('HDEL',KEYS[1],'seal','from','at','by','begun')
end
redis.call('DEL',KEYS[2])
return is..id
