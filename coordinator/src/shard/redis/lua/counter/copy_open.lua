#!lua flags=allow-oom
--[[
copy_open: a piece of the open requests of a group that leaves, or is to leave: all of them, and then what changed since.

KEYS[1]  state   hash: arm
KEYS[2]  slots   5 bytes a slot
KEYS[3]  group   "prefix:#{slot}:namespace:key"
ARGV[1]  replid  of the life that KEYS[1..2] are named by
ARGV[2]  epoch   of the move
ARGV[3]  part    to go on with, from 1; 0: from the start
ARGV[4]  cursor  "copy:place"
ARGV[5]  most    rows, about
ARGV[6]  keep_ms after this piece, changes are noted for so long

Returns {-1} unarmed; {0} if the group does not leave by that move, if it has few open requests, or if not all changes
  since the start were noted; or, as `copy_out`, {1, part, cursor, {}, '', pieces...}: where to go on, and of each piece
  its part, negative where rows are gone, and its rows. No piece: nothing changed since

Only one copy at a time: the next one ends it.
]]
if not (same_life(ARGV[1]) and is_armed(KEYS[1])) then return {-1} end
local name, i, most = KEYS[3], tonumber(ARGV[3]), tonumber(ARGV[5])
local slot = slot_in(name)
if not (is_before(slot, KEYS[2], ARGV[2]) or leaves(slot, KEYS[2], ARGV[2])) then return {0} end
local changes = name .. OPEN.changes
local copy, place = string.match(ARGV[4], '^(%d+):(%d+)$')
if i == 0 then
  if size_of(name, OPEN.parts.open) <= OPEN.many then return {0} end
  local time = redis.call('TIME')
  i, copy, place = 1, time[1] .. string.format('%06d', time[2]), '0'
  redis.call('UNLINK', changes)
  redis.call('RPUSH', changes, copy)
elseif redis.call('LINDEX', changes, 0) ~= copy then
  return {0}
end
redis.call('PEXPIRE', changes, ARGV[6])

local function name_of(number)
  return name .. ':' .. PARTS[number]
end

local pieces, rows = {}, 0
while i <= #OPEN.order and rows < most do
  local number = OPEN.order[i]
  local page = redis.call(number <= HASHES and 'HSCAN' or 'ZSCAN', name_of(number), place, 'COUNT', most - rows)
  if page[2][1] then pieces[#pieces + 1] = {number, page[2]} end
  place, rows = page[1], rows + #page[2] / 2
  if place == '0' then i = i + 1 end
end

-- The rows of some changes as they are now, for each part, and those that are gone.
local function rows_of(noted)
  local found = {}
  for _, change in ipairs(noted) do
    local number, field = string.match(change, '^(%d+) (.*)$')
    number = tonumber(number)
    local value = redis.call(number <= HASHES and 'HGET' or 'ZSCORE', name_of(number), field)
    if not value then number, value = -number, '' end
    local some = found[number] or {}
    found[number], some[#some + 1], some[#some + 2] = some, field, value
  end
  return found
end

if i > #OPEN.order and rows < most then
  -- The first element is no change.
  local from = math.max(tonumber(place), 1)
  local noted = redis.call('LRANGE', changes, from, from + most - rows - 1)
  for number, some in pairs(rows_of(noted)) do pieces[#pieces + 1] = {number, some} end
  place = string.format('%d', from + #noted)
end
return {1, i, copy .. ':' .. place, {}, '', unpack(pieces)}
