-- Which configuration does this master belong to, and which server is it? Writes nothing.
-- KEYS[1]: the record. ARGV[1]: our fingerprint. ARGV[2]: how many characters of the text below are known already.
-- Returns a letter, and the next 16 characters of the text, filled up with blanks.
-- n: no record; w: ours; o: another configuration's; m: being adopted from another; e: ours, adopted from another; c:
-- between two configurations by any other change.
-- The text: the run id, or blanks if INFO is refused; the quarantine id, or blanks if the record has none, or has that
-- of a mark; from character 33 on the fingerprint of the other configuration.
-- An adoption's quarantine ids begin with A (src/site/reconfiguration.hpp).
local m=redis.call('HMGET',KEYS[1],'desc','q','from')
local desc,q,from=m[1] or '',m[2] or '',m[3] or ''
local adopted=string.sub(q,1,1)=='A'
local is,other='o',desc
if desc=='' then
is='n'
elseif desc==ARGV[1] then
is,other=adopted and from~='' and 'e' or 'w',from
elseif adopted and desc=='moving '..from..' > '..ARGV[1] then
is,other,q='m',from,''
elseif string.sub(desc,1,7)=='moving ' then
is='c'
end
local info=redis.pcall('INFO','server')
local run=type(info)=='string' and string.match(info,'run_id:(%x+)') or ''
local function wide(s)
return string.sub(s..string.rep(' ',16),1,16)
end
return is..wide(string.sub(wide(run)..wide(q)..other,ARGV[2]+1))
