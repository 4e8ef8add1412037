#!lua flags=no-writes
--[[
groups: some of the groups that are left in slots that leave; or of those that stay so far, some that have blocks or many
  open requests; or, of any slots, some that have a manifest or the first copy of one.

KEYS[1]  state   hash: arm
KEYS[2]  slots   5 bytes a slot
KEYS[3]..        the index of each slot: a hash of "{slot}:namespace:key" and the group's epoch
ARGV[1]  replid  of the life that KEYS[1..2] are named by
ARGV[2]  epoch   of the move
ARGV[3]  slots   which, 4 bytes each
ARGV[4]  most    groups to tell of, about
ARGV[5]  what    1: of slots that no step of the move has reached, only groups that have blocks or many open requests; 2: of
                 any slots, only groups that have a manifest or the first copy of one
ARGV[6]  from    the place to go on from, among the slots, from 1
ARGV[7]  cursor  in the index of that slot, "0" at its start
ARGV[8]  prefix  of all names
ARGV[9]  origin  as in `counters`

Returns {-1} unarmed; or {1, slots, groups, from, cursor, complete 0|1}: the slots of which nothing is said, since they do
  not leave by that move, or are not before it; a text, an epoch and the names of its blocks per group; where to go on, 0
  behind the last slot; whether no manifest was ever lost here
]]
if not (same_life(ARGV[1]) and is_armed(KEYS[1])) then return {-1} end
local refused, indexes, ahead, here = {}, {}, ARGV[5] == '1', ARGV[5] == '2'
local some = #KEYS > 2 and redis.call('EXISTS', unpack(KEYS, 3)) > 0
for i = 1, #ARGV[3] / 4 do
  local slot = struct.unpack('>I4', ARGV[3], 4 * i - 3)
  local is_asked = ahead and is_before or leaves
  if not here and not is_asked(slot, KEYS[2], ARGV[2]) then
    refused[#refused + 1] = slot
  elseif some then
    indexes[i] = KEYS[2 + i]
  end
end

local function blocks_in(name)
  local names = redis.call('ZRANGE', name .. ':times', 0, -1)
  for _, page in ipairs(redis.call('ZRANGE', name .. ':pages', 0, -1)) do names[#names + 1] = page end
  return names
end

local found, looked_at, most = {}, 0, tonumber(ARGV[4])
local function add(index, words)
  for at = 1, #words, 2 do
    local name = string.match(index, '^[^{]*') .. words[at]
    local blocks, n = here and {} or blocks_in(name), #found
    local is_one
    if here then
      is_one = string.find(name, '#0%.%d+$') or redis.call('EXISTS', name .. ':manifest') == 1
    else
      is_one = not ahead or blocks[1] or size_of(name, OPEN.parts.open) > OPEN.many
    end
    if is_one then found[n + 1], found[n + 2], found[n + 3] = words[at], since_of(words[at + 1]), blocks end
  end
  looked_at = looked_at + #words / 2
end

local i, cursor = tonumber(ARGV[6]), ARGV[7]
while i <= #ARGV[3] / 4 and looked_at < most do
  local page = {'0', {}}
  if indexes[i] then page = redis.call('HSCAN', indexes[i], cursor, 'COUNT', most) end
  add(indexes[i], page[2])
  cursor = page[1]
  if cursor == '0' then i = i + 1 end
end
prefix, origin = ARGV[8], ARGV[9] .. ' ' .. redis.call('HGET', KEYS[1], 'arm')
return {1, refused, found, i <= #ARGV[3] / 4 and i or 0, cursor, is_complete() and 1 or 0}
