-- Acquires all names or none, if the guard's state still stands. With a proposal also acquires a fencing token.
-- KEYS: the names; the guard's record; with a proposal also the counters (a hash: name -> "token seal").
-- ARGV: value; ttl in ms; seal (empty: no guard); with a proposal also the proposed token (0: none).
-- Returns -1 in another state. Without a proposal the answer is that of SET: OK, or null if a name is taken.
-- With a proposal: "held K C" (refused), or "ack C", "known C MS", "hint C MS" (granted). C is the largest counter.
-- K is "known" if every counter is known, else "hint". MS is the server's time in ms.
-- Tokens stay text: a Lua number would lose digits above 2^53.
--:common
local fenced=ARGV[4]
local n=#KEYS-(fenced and 2 or 1)
if ARGV[3]~='' and other_state(KEYS[n+1],ARGV[3]) then
return -1
end
local held=false
for i=1,n do
if redis.call('EXISTS',KEYS[i])==1 then
held=true
end
end
local function set()
for i=1,n do
redis.call('SET',KEYS[i],ARGV[1],'NX','PX',ARGV[2])
end
end
if not fenced then
if held then
return false
end
set()
return redis.status_reply('OK')
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
set()
if known=='known' and below(top,fenced) then
for i=1,n do
redis.call('HSET',KEYS[n+2],KEYS[i],fenced..' '..ARGV[3])
end
return 'ack '..fenced
end
return known..' '..top..' '..time[1]..string.format('%06d',time[2]):sub(1,3)
