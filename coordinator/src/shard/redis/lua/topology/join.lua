#!lua flags=allow-oom
--[[
join: make this server a member, if it is nobody's.

KEYS[1]  pointer  "topology-id home-address"
ARGV[1]  replid   of the life that is to join
ARGV[2]  pointer  to be written

Returns {-1} another life · {1, pointer} the one that is there now

May be repeated. A pointer that is there stays: it is taken away only after its home was asked.
]]
if not same_life(ARGV[1]) then return {-1} end
redis.call('SET', KEYS[1], ARGV[2], 'NX')
return {1, redis.call('GET', KEYS[1])}
