#!lua flags=allow-oom
--[[
void: give up founding a topology. One that is in use stays.

KEYS[1]  pointer  "topology-id home-address"
KEYS[2]  topology the record
ARGV[1]  replid   of the life that is spoken to
ARGV[2]  id       of the topology

Returns {-1} another life · {1} its record is gone, and the pointer if it was its · {0} no record of
this id is being created here: nothing is written

Without its record a topology can never come into use: whoever meets a pointer to it may take that
away. May be repeated.
]]
if not same_life(ARGV[1]) then return {-1} end
local _, _, _, status, id = header(redis.call('GET', KEYS[2]))
if id ~= ARGV[2] or status ~= 'creating' then return {0} end
local pointer = string.match(redis.call('GET', KEYS[1]) or '', '^%x+')
if pointer == id then redis.call('DEL', KEYS[1]) end
redis.call('DEL', KEYS[2])
return {1}
