#!lua flags=allow-oom
--[[
take_list: store which keys the former shard of arriving slots holds.

KEYS[1]  state   hash: arm
KEYS[2]  slots   5 bytes per slot
KEYS[3]..        records, of the held keys
ARGV[1]  replid  of the life that KEYS[1..2] are named by
ARGV[2]  epoch   of the move
ARGV[3]  complete slots in which no other key is held, 4 bytes per slot

Returns {-1} unarmed; or {1, slots...}: those that do not come here by that move: nothing was stored for them
]]
if not same_life(ARGV[1]) or redis.call('HEXISTS', KEYS[1], 'arm') == 0 then return {-1} end
local epoch, answer, notes = tonumber(ARGV[2]), {1}, {}

-- Adds a note to those of the slot that `text` names, unless the slot is refused.
local function add_note(text, what)
  local slot = tonumber(slot_in(text))
  if notes[slot] == nil then
    local _, its_epoch, import = slot_of(text, KEYS[2])
    notes[slot] = import and its_epoch == epoch and {note = import.note} or false
    if not notes[slot] then answer[#answer + 1] = slot end
  end
  if notes[slot] then table.insert(notes[slot], what) end
end

for _, key in ipairs({unpack(KEYS, 3)}) do add_note(key, 'k' .. key) end
for at = 1, #ARGV[3], 4 do add_note('{' .. struct.unpack('>I4', ARGV[3], at) .. '}', '*') end
for _, its in pairs(notes) do
  if its then its.note(unpack(its)) end
end
return answer
