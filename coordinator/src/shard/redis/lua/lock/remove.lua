#!lua flags=allow-oom
--[[
remove: take away what its holders have brought along to the slot's next shard.

KEYS[1]  slots   5 bytes a slot; present where this life is armed
KEYS[2]..        records, one an operation: "nonce|..."
ARGV[1]  replid  of the life that KEYS[1] is named by
ARGV[2].. nonce, epoch of the move: two an operation

Returns {-1} unarmed, nothing written; or {now, answers...}: 1 deleted, 0 not there, or the slot is not
sealed at that epoch

Nobody who waits gets it: a sealed slot grants nothing.
]]
if not same_life(ARGV[1]) or redis.call('EXISTS', KEYS[1]) == 0 then return {-1} end
local answers = {time_ms()}
for i = 1, #KEYS - 1 do
  local key, nonce, epoch = KEYS[1 + i], ARGV[2 * i], tonumber(ARGV[2 * i + 1])
  local mode, its_epoch = slot_of(key, KEYS[1])
  local there = mode == 'S' and its_epoch == epoch and parse(redis.pcall('GET', key)) == nonce
  answers[1 + i] = there and redis.call('DEL', key) or 0
end
return answers
