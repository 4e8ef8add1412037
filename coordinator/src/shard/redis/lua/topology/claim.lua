#!lua
--[[
claim: begin to found a topology, with this server as its home.

KEYS[1]  pointer  "topology-id home-address"
KEYS[2]  topology the record
KEYS[3]  fence    greatest incarnation seen
ARGV[1]  replid   of the life that KEYS[3] is named by
ARGV[2]  n        incarnation of the record
ARGV[3]  pointer  to be written
ARGV[4]  record   to be written, its status creating

Returns {-1} another life · {-2, fence} stale · {0} a pointer or a record is there: nothing is
written · {1} both are written

Without allow-oom: nothing is founded on a full server. An id is claimed once and never again.
]]
if not same_life(ARGV[1]) then return {-1} end
local fence = redis.call('GET', KEYS[3])
if fence and ARGV[2] < fence then return {-2, fence} end
if redis.call('EXISTS', KEYS[1], KEYS[2]) > 0 then return {0} end
redis.call('MSET', KEYS[1], ARGV[3], KEYS[2], ARGV[4])
return {1}
