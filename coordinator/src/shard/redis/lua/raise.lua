#!lua flags=allow-oom
--[[
raise: move to a greater token epoch, before the counter runs out.

KEYS[1]  quiet   "map|te|arm"
KEYS[2]  state   hash: te
KEYS[3]  ctr     the token counter
KEYS[4]  fence   greatest incarnation seen
ARGV[1]  replid  of the life that the keys are named by
ARGV[2]  n       incarnation of the sender's record
ARGV[3]  te      the epoch

Returns {-1} unarmed · {-2, fence} stale · {1} raised · {0} it was there already
]]
if not same_life(ARGV[1]) then return {-1} end
local fence = below_fence(KEYS[4], ARGV[2])
if fence then return {-2, fence} end
local te = redis.call('HGET', KEYS[2], 'te')
if not te then return {-1} end
if tonumber(te) >= tonumber(ARGV[3]) then return {0} end
redis.call('HSET', KEYS[2], 'te', ARGV[3])
redis.call('SET', KEYS[3], 0)
local quiet = redis.call('GET', KEYS[1])
if quiet then redis.call('SET', KEYS[1], (string.gsub(quiet, '|%d+|', '|' .. ARGV[3] .. '|', 1))) end
return {1}
