-- How long until the last of several names is gone? The answer is like that of PTTL for one key.
-- Returns ms; -1: never; -2: all names are gone.
-- KEYS: the names. All of them are read, so that the server notifies us when any of them changes.
local most=-2
for i=1,#KEYS do
local left=redis.call('PTTL',KEYS[i])
if left==-1 or (most~=-1 and left>most) then
most=left
end
end
return most
