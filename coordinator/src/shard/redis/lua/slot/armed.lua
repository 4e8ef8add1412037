#!lua flags=no-writes
--[[
armed: the state of this life of the server.

KEYS[1]  state   hash: arm, grace (an epoch; milliseconds of the server's clock), grace_ms (how long it was set for)
ARGV[1]  replid  of the life that KEYS[1] is named by

Returns {-1} another life · {0} it has none · {1, arm, grace_left_ms}

Reads only.
]]
if not same_life(ARGV[1]) then return {-1} end
local state = redis.call('HMGET', KEYS[1], 'arm', 'grace', 'grace_ms')
if not state[1] then return {0} end
return {1, tonumber(state[1]), time_left(state[2], state[3])}
