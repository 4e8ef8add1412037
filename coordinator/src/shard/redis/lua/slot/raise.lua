#!lua flags=allow-oom
--[[
raise: move to a greater token epoch, before the counter runs out.

KEYS[1]  quiet   "map|te|arm"
KEYS[2]  state   hash: te
KEYS[3]  ctr     the token counter
KEYS[4]  fence   greatest incarnation seen
KEYS[5]  lives   set of every life that ever had state here
ARGV[1]  replid  of the life that KEYS[1..4] are named by
ARGV[2]  life    its name
ARGV[3]  n       incarnation of the sender's record
ARGV[4]  te      the epoch

Returns {-1} unarmed · {-2, fence} stale · {1} raised · {0} it was there already

An unarmed life keeps the fence.
]]
if not same_life(ARGV[1]) then return {-1} end
local fence = below_fence(KEYS[4], ARGV[3])
if fence then return {-2, fence} end
redis.call('SADD', KEYS[5], ARGV[2])
local te = redis.call('HGET', KEYS[2], 'te')
if not te then return {-1} end
if tonumber(te) >= tonumber(ARGV[4]) then return {0} end
redis.call('HSET', KEYS[2], 'te', ARGV[4])
redis.call('SET', KEYS[3], 0)
local quiet = redis.call('GET', KEYS[1])
if quiet then redis.call('SET', KEYS[1], (string.gsub(quiet, '|%d+|', '|' .. ARGV[4] .. '|', 1))) end
return {1}
