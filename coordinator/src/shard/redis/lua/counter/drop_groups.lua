#!lua flags=allow-oom
--[[
drop_groups: groups that are where their slots go.

KEYS[1]  state   hash: arm
KEYS[2]  slots   5 bytes a slot
KEYS[3]..        groups
ARGV[1]  replid  of the life that KEYS[1..2] are named by
ARGV[2]  epoch   of the move
ARGV[3]  prefix  of all names
ARGV[4]  life    its name
ARGV[5].. for each group the life that it was copied from, and the stamp of what arrived

Returns {-1} unarmed; or {1, slots, texts}: the slots that do not leave by that move, of which nothing was dropped; and
  "{slot}:namespace:key" of groups that are not dropped, as they are not what was copied from this life
]]
if not (same_life(ARGV[1]) and is_armed(KEYS[1])) then return {-1} end
local refused, differ, start = {}, {}, #ARGV[3] + 3
for i = 3, #KEYS do
  local text, source, stamp = string.sub(KEYS[i], start), ARGV[2 * i - 1], ARGV[2 * i]
  local slot = string.match(text, '^{(%d+)}')
  if not leaves(slot, KEYS[2], ARGV[2]) then
    refused[#refused + 1] = tonumber(slot)
  elseif source == ARGV[4] and stamp_of(KEYS[i], KEYS[i]) ~= stamp then
    differ[#differ + 1] = text
  else
    unlink_parts(KEYS[i])
    redis.call('HDEL', ARGV[3] .. ':#{' .. slot .. '}', text)
  end
end
return {1, refused, differ}
