#!lua flags=no-writes
--[[
inspect: who holds a lock.

KEYS[1]  state   hash: arm, grace
KEYS[2]  record  "nonce|label|offset|te|base|arm|flags"
ARGV[1]  replid  of the life that KEYS[1] is named by

Returns {-1} unarmed · {0} free · {1, record, remaining_ms} held
]]
if not same_life(ARGV[1]) then return {-1} end
local state = redis.call('HMGET', KEYS[1], 'arm', 'grace')
if not state[1] then return {-1} end
local record = redis.pcall('GET', KEYS[2])
local nonce, _, _, _, _, arm = parse(record)
if not nonce or (arm ~= state[1] and time_ms() >= tonumber(state[2])) then return {0} end
return {1, record, redis.call('PTTL', KEYS[2])}
