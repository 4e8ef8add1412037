#!lua flags=allow-oom
--[[
remove: delete records that their holders have moved to the slot's next shard.

KEYS[1]  slots   5 bytes per slot; present if this life is armed
KEYS[2]..        records, one per operation: "nonce|...", or hashes with an entry per nonce
ARGV[1]  replid  of the life that KEYS[1] is named by
ARGV[2].. nonce, epoch of the move: two per operation

Returns {-1} unarmed, nothing written; or {now, answers...}: 1 deleted, 0 not there, or the slot is not
sealed at that epoch

No waiter gets the lock: a sealed slot grants nothing.
]]
if not same_life(ARGV[1]) or redis.call('EXISTS', KEYS[1]) == 0 then return {-1} end
local answers = {time_ms()}
local shard = {now = time_ms()}

local function remove(key, nonce)
  local record = record_at(shard, key, nonce)
  if type(record) ~= 'table' then return parse(record) == nonce and redis.call('DEL', key) or 0 end
  local entry = record.kind and shares.entry(record, nonce)
  if not entry then return 0 end
  shares.remove(record, nonce, entry)
  return 1
end

for i = 1, #KEYS - 1 do
  local key, nonce, epoch = KEYS[1 + i], ARGV[2 * i], tonumber(ARGV[2 * i + 1])
  local mode, its_epoch = slot_of(key, KEYS[1])
  answers[1 + i] = mode == 'S' and its_epoch == epoch and remove(key, nonce) or 0
end
return answers
