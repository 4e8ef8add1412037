#!lua flags=no-writes
--[[
read: the record, unless the caller has it.

KEYS[1]  topology the record
KEYS[2]  fence    greatest incarnation seen
ARGV[1]  replid   of the life that KEYS[2] is named by
ARGV[2]  known    "n version life status id" of the record that the caller has; "" for none

Returns {-1} another life · {0} no record · {1, fence or nil} it is the known one ·
{2, fence or nil, record}

Reads only.
]]
if not same_life(ARGV[1]) then return {-1} end
local record = redis.call('GET', KEYS[1])
if not record then return {0} end
local fence = redis.call('GET', KEYS[2])
if string.match(record, '^[^\n]*') == ARGV[2] then return {1, fence} end
return {2, fence, record}
