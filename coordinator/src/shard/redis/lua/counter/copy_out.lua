#!lua flags=allow-oom
--[[
copy_out: a piece of a group that leaves; or some of its blocks, which may be copied before.

KEYS[1]  state   hash: arm
KEYS[2]  slots   5 bytes a slot
KEYS[3]  group   "prefix:#{slot}:namespace:key"
ARGV[1]  replid  of the life that KEYS[1..2] are named by
ARGV[2]  epoch   of the move
ARGV[3]  prefix  of all names
ARGV[4]  origin  as in `counters`
ARGV[5]  part    to go on with, from 1
ARGV[6]  cursor  in that part, "0" at its start
ARGV[7]  most    rows, about
ARGV[8]  rest    1: without the parts of open requests, which `copy_open` copies
ARGV[9]..        names of blocks: these are asked for, and nothing else

Returns {-1} unarmed; {0} where there is nothing, or where it does not leave by that move; or {1, part, cursor, sizes,
  stamp, pieces...}: where to go on, part 0 behind the last piece; the number of rows of each part; with the last piece
  the stamp of the group; and of each piece its part and rows, of a field and its value each. Blocks come only where they
  are asked for; of these all that there are

Whether the group may lack its last changes is seen to before the first piece, as at any request: where it goes nobody
could tell.
]]
if not (same_life(ARGV[1]) and is_armed(KEYS[1])) then return {-1} end
local name = KEYS[3]
local slot = slot_in(name)

local function some_blocks()
  local found, rows = redis.call('HMGET', name .. ':blocks', unpack(ARGV, 9)), {}
  for i, records in ipairs(found) do
    if records then rows[#rows + 1], rows[#rows + 2] = ARGV[8 + i], records end
  end
  return {1, 0, '0', {}, '', {BLOCKS, rows}}
end

if #ARGV > 8 and is_before(slot, KEYS[2], ARGV[2]) then return some_blocks() end
if not leaves(slot, KEYS[2], ARGV[2]) then return {0} end
if #ARGV > 8 then return some_blocks() end
local sizes, i, cursor, room = {}, tonumber(ARGV[5]), ARGV[6], tonumber(ARGV[7])
local left_out = {[BLOCKS] = true}
if ARGV[8] == '1' then
  for _, number in ipairs(OPEN.order) do left_out[number] = true end
end
if i == 1 and cursor == '0' then
  now, prefix, origin = time_ms(), ARGV[3], ARGV[4] .. ' ' .. redis.call('HGET', KEYS[1], 'arm')
  local segment = load({name = name})
  if segment then save(segment) end
  local _, _, in_doubt = manifest.of(name)
  if in_doubt then redis.call('HDEL', name .. ':manifest', 'origin') end
end

-- Some elements of a list from a place on, as {next place or "0", {place, value...}}.
local function list_page(list, from, size, most)
  local rows = {}
  for _, value in ipairs(redis.call('LRANGE', list, from, from + most - 1)) do
    rows[#rows + 1], rows[#rows + 2] = string.format('%d', from + #rows / 2), value
  end
  local behind = from + #rows / 2
  return {behind < size and string.format('%d', behind) or '0', rows}
end

local function page_of(i, from, most)
  local part = name .. ':' .. PARTS[i]
  if is_list(i) then return list_page(part, tonumber(from), sizes[i], most) end
  return redis.call(i <= HASHES and 'HSCAN' or 'ZSCAN', part, from, 'COUNT', most)
end

local rows = 0
for j = 1, #PARTS do
  sizes[j] = size_of(name, j)
  rows = rows + sizes[j]
end
if rows == 0 then return {0} end
local answer = {1, 0, '0', sizes, ''}
while i <= #PARTS and room > 0 do
  if sizes[i] > 0 and not left_out[i] then
    local page = page_of(i, cursor, room)
    cursor, room = page[1], room - #page[2] / 2
    answer[#answer + 1] = {i, page[2]}
  end
  if cursor == '0' then i = i + 1 end
end
if i <= #PARTS then
  answer[2], answer[3] = i, cursor
else
  answer[5] = stamp_of(name, name)
end
return answer
