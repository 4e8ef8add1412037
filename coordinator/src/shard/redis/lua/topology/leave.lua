#!lua flags=allow-oom
--[[
leave: forget a topology that was never in use. Its home has been asked, and has no record of it.

KEYS[1]  pointer  "topology-id home-address"
KEYS[2]  copy     newest topology record seen
KEYS[3]  state    present where this life is armed
ARGV[1]  replid   of the life that KEYS[2..3] are named by
ARGV[2]  id       of the topology

Returns {-1} another life · {1} forgotten · {0} the pointer names another, or there is none ·
{-2} a copy or a state is there: it was in use, and nothing is written

May be repeated.
]]
if not same_life(ARGV[1]) then return {-1} end
if string.match(redis.call('GET', KEYS[1]) or '', '^%x+') ~= ARGV[2] then return {0} end
if redis.call('EXISTS', KEYS[2], KEYS[3]) > 0 then return {-2} end
redis.call('DEL', KEYS[1])
return {1}
