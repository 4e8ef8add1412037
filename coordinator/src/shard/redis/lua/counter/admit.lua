#!lua flags=allow-oom
--[[
admit: all counters of slots that come are here.

KEYS[1]  state   hash: arm
KEYS[2]  slots   5 bytes a slot
KEYS[3]  open    a bit a slot
KEYS[4]  complete as in `counters`
ARGV[1]  replid  of the life that KEYS[1..3] are named by
ARGV[2]  epoch   of the move
ARGV[3]  slots   which, 4 bytes each
ARGV[4]  complete 0: manifests of these slots may have been lost where they come from

Returns {-1} unarmed; or {1, slots...}: those that do not come by that move, or of which no mover said yet which tokens
  their former shard made
]]
if not (same_life(ARGV[1]) and is_armed(KEYS[1])) then return {-1} end
local answer, epoch = {1}, tonumber(ARGV[2])
if ARGV[4] == '0' then redis.call('UNLINK', KEYS[4]) end
for at = 1, #ARGV[3], 4 do
  local slot = struct.unpack('>I4', ARGV[3], at)
  local mode, its_epoch = stored(slot, KEYS[2])
  if its_epoch ~= epoch or not (mode == 'B' or mode == 'A' or mode == 'O') then
    answer[#answer + 1] = slot
  elseif mode == 'B' then
    put_slot(KEYS[2], KEYS[3], slot, mode, 'A', epoch)
  end
end
return answer
