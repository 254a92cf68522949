-- How long until the last of several names is gone, as PTTL tells it of one: ms; -1: never; -2: all are.
-- KEYS: the names, all of them read, so that the server tells when any of them changes.
local most=-2
for i=1,#KEYS do
local left=redis.call('PTTL',KEYS[i])
if left==-1 or (most~=-1 and left>most) then
most=left
end
end
return most
