-- Takes a master from an old configuration to a new one, in two steps. Between the steps the master serves neither.
-- KEYS: the record; the hash of short visits.
-- ARGV[1], ARGV[2]: the old and the new fingerprint.
-- ARGV[3]: a new quarantine id of 16 digits and, right behind it, the quarantine id that must be in the record now.
-- ARGV[4]: 'mark' is the first step; 'enter' is the second step, only after the first; 'look' writes nothing.
-- If the record has another id, or belongs to a third configuration, nothing is written. So a script that arrives after
-- somebody else changed the record does nothing.
-- Returns what the record says now: a letter, and the quarantine id. n: no record; o: old; w: new; e: new, entered from
-- old; u: old or new, entered by another change; m: marked by this change; b: marked by the opposite change; t: a third
-- configuration.
local old,new,step=ARGV[1],ARGV[2],ARGV[4]
local moving='moving '..old..' > '..new
local m=redis.call('HMGET',KEYS[1],'desc','q','from')
local q=m[2] or ''
if #q~=16 then
q=''
end
local letters={['']='n',[old]=m[3] and 'u' or 'o',[new]=m[3]==old and 'e' or m[3] and 'u' or 'w',[moving]='m',
['moving '..new..' > '..old]='b'}
local is=letters[m[1] or ''] or 't'
if q==string.sub(ARGV[3],17) and (step=='mark' and is~='t' or step=='enter' and is=='m' and q~='') then
is,q=step=='mark' and 'm' or 'e',string.sub(ARGV[3],1,16)
redis.call('HSET',KEYS[1],'desc',is=='m' and moving or new,'q',q,'from',old)
redis.call('HDEL',KEYS[1],'seal')
redis.call('DEL',KEYS[2])
end
return is..q
