#!lua flags=no-writes
--[[
groups: some of the groups that are left in slots that leave.

KEYS[1]  state   hash: arm
KEYS[2]  slots   5 bytes a slot
KEYS[3]..        the index of each slot: a hash of "{slot}:namespace:key" and the group's epoch
ARGV[1]  replid  of the life that KEYS[1..2] are named by
ARGV[2]  epoch   of the move
ARGV[3]  slots   which, 2 bytes each
ARGV[4]  most    groups to tell of, about

Returns {-1} unarmed; or {1, slots, groups}: the slots that do not leave by that move; a text and an epoch a group
]]
if not (same_life(ARGV[1]) and is_armed(KEYS[1])) then return {-1} end
local refused, found, most = {}, {}, 2 * tonumber(ARGV[4])
local some = #KEYS > 2 and redis.call('EXISTS', unpack(KEYS, 3)) > 0
for i = 1, #ARGV[3] / 2 do
  local slot, cursor = struct.unpack('>I2', ARGV[3], 2 * i - 1), some and '0'
  if not leaves(slot, KEYS[2], ARGV[2]) then
    refused[#refused + 1] = slot
    cursor = nil
  end
  while cursor and #found < most do
    local page = redis.call('HSCAN', KEYS[2 + i], cursor, 'COUNT', ARGV[4])
    for _, word in ipairs(page[2]) do found[#found + 1] = word end
    cursor = page[1] ~= '0' and page[1]
  end
end
return {1, refused, found}
