#!lua flags=allow-oom
--[[
drop_groups: groups that are where their slots go.

KEYS[1]  state   hash: arm
KEYS[2]  slots   5 bytes a slot
KEYS[3]..        groups
ARGV[1]  replid  of the life that KEYS[1..2] are named by
ARGV[2]  epoch   of the move
ARGV[3]  prefix  of all names

Returns {-1} unarmed; or {1, slots...}: those that do not leave by that move, of which nothing was dropped
]]
if not (same_life(ARGV[1]) and is_armed(KEYS[1])) then return {-1} end
local answer, start = {1}, #ARGV[3] + 3
for i = 3, #KEYS do
  local text = string.sub(KEYS[i], start)
  local slot = string.match(text, '^{(%d+)}')
  if leaves(slot, KEYS[2], ARGV[2]) then
    unlink_parts(KEYS[i])
    redis.call('HDEL', ARGV[3] .. ':#{' .. slot .. '}', text)
  else
    answer[#answer + 1] = tonumber(slot)
  end
end
return answer
