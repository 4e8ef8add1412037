#!lua
--[[
copy_in: a piece of a group that comes, or is to come, is put aside.

KEYS[1]  state   hash: arm
KEYS[2]  slots   5 bytes a slot
KEYS[3]  aside   "prefix:aside:epoch:life:{slot}:namespace:key", by the life that it was copied from
KEYS[4]  ahead   "prefix:aside:{slot}:namespace:key", for blocks: their names say their content, whatever they are copied from
KEYS[5]  asides  a set of the names of KEYS[3..4], of the slot
KEYS[6]  index   of the slot
ARGV[1]  replid  of the life that KEYS[1..2] are named by
ARGV[2]  epoch   of the move
ARGV[3]  text    "{slot}:namespace:key"
ARGV[4]  since   the epoch of the group as it is there
ARGV[5]  keep_ms what is put aside is kept so long
ARGV[6]  asked   names of so many blocks follow
ARGV[7].. these; then part, how many rows, and these, as HSET or ZADD takes them, or places and values of a list: for each
          part; the number of a part is negative where rows are gone, and only their fields follow

Returns {-1} unarmed; or {1, word, names...}: "aside", and those of the blocks asked for that are not put aside;
  "refused", the slot does not come by that move, now or later; or "here", the group, or a later one, has arrived.
  Nothing was written then

Without allow-oom: a full server refuses it whole.
]]
if not (same_life(ARGV[1]) and is_armed(KEYS[1])) then return {-1} end
local slot = string.match(ARGV[3], '^{(%d+)}')
if not (comes(slot, KEYS[2], ARGV[2]) or is_before(slot, KEYS[2], ARGV[2])) then return {1, 'refused'} end
local present = redis.call('HGET', KEYS[6], ARGV[3])
if present and tonumber(since_of(present)) >= tonumber(ARGV[4]) then return {1, 'here'} end

-- Elements that a list has already stay. Elements behind a gap are left out; then the group is incomplete.
local function put_behind(list, at, rows)
  local size, behind = redis.call('LLEN', list), {}
  for place = at, at + 2 * rows - 2, 2 do
    if tonumber(ARGV[place]) == size + #behind then behind[#behind + 1] = ARGV[place + 1] end
  end
  if behind[1] then redis.call('RPUSH', list, unpack(behind)) end
end

local rows_at = 7 + tonumber(ARGV[6])
local at = rows_at
while at < #ARGV do
  local i, rows = tonumber(ARGV[at]), tonumber(ARGV[at + 1])
  local is_gone, width = i < 0, i < 0 and 1 or 2
  i = math.abs(i)
  local base = i == BLOCKS and KEYS[4] or KEYS[3]
  local name = base .. ':' .. PARTS[i]
  note_aside(KEYS[5], base, ARGV[5])
  if is_gone then
    redis.call(i <= HASHES and 'HDEL' or 'ZREM', name, unpack(ARGV, at + 2, at + 1 + rows))
  elseif is_list(i) then
    put_behind(name, at + 2, rows)
  else
    redis.call(i <= HASHES and 'HSET' or 'ZADD', name, unpack(ARGV, at + 2, at + 1 + 2 * rows))
  end
  redis.call('PEXPIRE', name, ARGV[5])
  at = at + 2 + width * rows
end
local answer = {1, 'aside'}
for nth = 7, rows_at - 1 do
  local name = ARGV[nth]
  if redis.call('HEXISTS', KEYS[4] .. ':' .. PARTS[BLOCKS], name) == 0 then answer[#answer + 1] = name end
end
return answer
