#!lua flags=allow-oom
--[[
swap: put a record in the place of the one at the expected version, if that one is usable.

KEYS[1]  topology  the record, and the channel on which its versions are told
KEYS[2]  fence     greatest incarnation seen
KEYS[3]  lives     set of every life that ever had anything here
ARGV[1]  replid    of the life that KEYS[2] is named by
ARGV[2]  life      its name
ARGV[3]  id        of the topology
ARGV[4]  n         expected incarnation
ARGV[5]  version   expected version
ARGV[6]  next n    incarnation of the new record
ARGV[7]  record    the new one

Returns {-1} another life · {1} written · {0, record} another version is there · {-3, record or nil}
the record there is none, another topology's, or of another life: it may be an old one ·
{-2, fence} the fence is above the record there, or above the new one

With allow-oom: a full server must still take its shards in again. Nothing is written but by {1}.
]]
if not same_life(ARGV[1]) then return {-1} end
local record, fence = redis.call('GET', KEYS[1]), redis.call('GET', KEYS[2])
local n, version, life, _, id = header(record)
if id ~= ARGV[3] or life ~= ARGV[2] then return {-3, record} end
if fence and n < fence then return {-2, fence} end
if n ~= ARGV[4] or version ~= ARGV[5] then return {0, record} end
local above = below_fence(KEYS[2], ARGV[6])
if above then return {-2, above} end
redis.call('SADD', KEYS[3], ARGV[2])
redis.call('SET', KEYS[1], ARGV[7])
tell(KEYS[1], ARGV[7])
return {1}
