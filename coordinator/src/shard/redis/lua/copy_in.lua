#!lua
--[[
copy_in: a piece of a group that comes is put aside.

KEYS[1]  state   hash: arm
KEYS[2]  slots   5 bytes a slot
KEYS[3]  aside   "prefix:aside:epoch:life:{slot}:namespace:key", by the life that it was copied from
ARGV[1]  replid  of the life that KEYS[1..2] are named by
ARGV[2]  epoch   of the move
ARGV[3]  slot    of the group
ARGV[4]  keep_ms what is put aside is kept so long
ARGV[5].. part, how many rows, and these, as HSET or ZADD takes them, or places and values of a list: for each part

Returns {-1} unarmed; or {1, 1}; or {1, 0} where the slot does not come by that move: nothing was written

Without allow-oom: a full server refuses it whole.
]]
if not (same_life(ARGV[1]) and is_armed(KEYS[1])) then return {-1} end
if not comes(ARGV[3], KEYS[2], ARGV[2]) then return {1, 0} end

-- Whatever a list has already stays; what would leave a gap is left out, and then something is missing.
local function put_behind(list, at, rows)
  local size, behind = redis.call('LLEN', list), {}
  for place = at, at + 2 * rows - 2, 2 do
    if tonumber(ARGV[place]) == size + #behind then behind[#behind + 1] = ARGV[place + 1] end
  end
  if behind[1] then redis.call('RPUSH', list, unpack(behind)) end
end

local at = 5
while at < #ARGV do
  local i, rows = tonumber(ARGV[at]), tonumber(ARGV[at + 1])
  local name = KEYS[3] .. ':' .. PARTS[i]
  if is_list(i) then
    put_behind(name, at + 2, rows)
  else
    redis.call(i <= HASHES and 'HSET' or 'ZADD', name, unpack(ARGV, at + 2, at + 1 + 2 * rows))
  end
  redis.call('PEXPIRE', name, ARGV[4])
  at = at + 2 + 2 * rows
end
return {1, 1}
