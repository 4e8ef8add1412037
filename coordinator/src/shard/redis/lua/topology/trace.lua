#!lua flags=no-writes
--[[
trace: everything this server knows of a topology, at one moment.

KEYS[1]  pointer  "topology-id home-address"
KEYS[2]  topology the record, where this server is its home
KEYS[3]  fence    greatest incarnation seen
KEYS[4]  copy     newest topology record seen: "n version record"
KEYS[5]  state    hash: arm, te (epochs); present where this life is armed
ARGV[1]  replid   of the life that KEYS[3..5] are named by

Returns {-1} another life · {1, pointer, record, fence, copy, armed 0|1, greatest epoch}, nil for
each text that is not there

Reads only.
]]
if not same_life(ARGV[1]) then return {-1} end
local texts = redis.call('MGET', KEYS[1], KEYS[2], KEYS[3], KEYS[4])
local state = redis.call('HMGET', KEYS[5], 'arm', 'te')
local greatest = math.max(tonumber(state[1] or 0), tonumber(state[2] or 0))
return {1, texts[1], texts[2], texts[3], texts[4], state[1] and 1 or 0, greatest}
