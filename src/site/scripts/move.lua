-- Take a master from an old configuration to a new one, in two steps between which it serves neither.
-- KEYS: the record, then the hash of short visits. ARGV[1], ARGV[2] the two fingerprints, old and new; ARGV[3] a new
-- quarantine id and, right behind its 16 digits, the one that is to be there now; ARGV[4] the step: 'mark', the first;
-- 'enter', the second, only where the first was made; 'look', neither. Where another id is there, or the record is of a
-- third configuration, nothing is written: what was sent before somebody else changed the record does nothing when it
-- arrives.
-- The answer is what the record says then: a letter, and its quarantine id. n: there is none; o: old; w: new; e: new,
-- entered from old; u: old or new, entered by another change; m: marked by this change; b: marked by the opposite one;
-- t: of a third configuration.
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
