-- The SETs of a fenced round, for all names or for none, and the proposed token where the counters allow it.
-- KEYS: the names, then the guard's record, then the counters: a hash, name -> "token seal".
-- ARGV: value, ttl in ms, seal (empty: none is kept), proposal (0: none).
-- -1: another seal; "held K C": refused; "ack C", "known C MS", "hint C MS": granted. C is the largest counter, K says
-- whether each is known, MS is the server's time. Tokens stay text: a Lua number would lose digits above 2^53.
local n=#KEYS-2
local held=false
for i=1,n do
if redis.call('EXISTS',KEYS[i])==1 then
held=true
end
end
if ARGV[3]~='' and redis.call('HGET',KEYS[n+1],'seal')~=ARGV[3] then
return -1
end
local function below(a,b)
return #a<#b or (#a==#b and a<b)
end
local top,known='0','known'
for i=1,n do
local v=redis.call('HGET',KEYS[n+2],KEYS[i])
local token,seal=string.match(v or '','^(%d+) (.*)$')
if seal~=ARGV[3] then
known='hint'
end
if token and below(top,token) then
top=token
end
end
if held then
return 'held '..known..' '..top
end
local time=redis.call('TIME')
for i=1,n do
redis.call('SET',KEYS[i],ARGV[1],'NX','PX',ARGV[2])
end
if known=='known' and below(top,ARGV[4]) then
for i=1,n do
redis.call('HSET',KEYS[n+2],KEYS[i],ARGV[4]..' '..ARGV[3])
end
return 'ack '..ARGV[4]
end
return known..' '..top..' '..time[1]..string.format('%06d',time[2]):sub(1,3)
