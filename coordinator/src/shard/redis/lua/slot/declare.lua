#!lua flags=allow-oom
--[[
declare: refuse acquires by views from before a namespace was declared.

KEYS[1]  quiet    "map|te|arm", deleted if it is of an earlier map version
KEYS[2]  state    hash: declared, grace (a map version; milliseconds of the server's clock), grace_ms
KEYS[3]  fence    greatest incarnation seen
KEYS[4]  copy     newest topology record seen
KEYS[5]  lives    set of every life that ever had state here
ARGV[1]  replid   of the life that KEYS[1..4] are named by
ARGV[2]  life     its name
ARGV[3]  n        incarnation of the sender's record
ARGV[4]  version  of the record
ARGV[5]  record   its text
ARGV[6]  declared map version at which the namespace was declared

Returns {-1} unarmed · {-2, fence} stale · {grace_left_ms} done, now or before

An unarmed life keeps the fence and the copy.
]]
if not same_life(ARGV[1]) then return {-1} end
local fence = below_fence(KEYS[3], ARGV[3])
if fence then return {-2, fence} end
keep_copy(KEYS[4], ARGV[3], ARGV[4], ARGV[5])
redis.call('SADD', KEYS[5], ARGV[2])
local state = redis.call('HMGET', KEYS[2], 'declared', 'grace', 'grace_ms')
if not state[1] then return {-1} end
if tonumber(state[1]) < tonumber(ARGV[6]) then
  redis.call('HSET', KEYS[2], 'declared', ARGV[6])
  redis.call('DEL', KEYS[1])
end
return {time_left(state[2], state[3])}
