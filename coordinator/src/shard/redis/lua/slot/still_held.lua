#!lua flags=allow-oom
--[[
still_held: which keys are still held in sealed slots.

KEYS[1]  state   hash: arm, grace, grace_ms, grace_from
KEYS[2]  slots   5 bytes per slot
KEYS[3]..        records
ARGV[1]  replid  of the life that KEYS[1..2] are named by
ARGV[2]  epoch   of the move
ARGV[3]  slots   that must be sealed, or shut, at it, 4 bytes per slot

Returns {-1} unarmed; or {1, grace_left_ms, held, refused}: which records are live, by their places
from 1, and which slots are neither sealed nor shut; both empty in grace
]]
if not same_life(ARGV[1]) then return {-1} end
local is_live, shard, grace_left = live_records(KEYS[1], true)
if not is_live then return {-1} end
local held, refused = {}, {}
if grace_left > 0 then return {1, grace_left, held, refused} end
local records = #KEYS > 2 and redis.call('MGET', unpack(KEYS, 3)) or {}
for i, record in ipairs(records) do
  local key, shared = KEYS[2 + i], nil
  if is_live(record) then
    left_of(key, record, true)
  else
    shared = not record and shares.load(shard, key, '=')
  end
  if is_live(record) or (shared and shares.is_live(shared)) then held[#held + 1] = i end
end
local epoch = tonumber(ARGV[2])
for at = 1, #ARGV[3], 4 do
  local slot = struct.unpack('>I4', ARGV[3], at)
  local mode, its_epoch = stored(slot, KEYS[2])
  if its_epoch ~= epoch or not (mode == 'S' or mode == '-') then refused[#refused + 1] = slot end
end
return {1, 0, held, refused}
