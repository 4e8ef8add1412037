#!lua flags=allow-oom
--[[
arrive: a group is made of what was put aside.

KEYS[1]  state   hash: arm
KEYS[2]  slots   5 bytes a slot
KEYS[3]  group   "prefix:#{slot}:namespace:key"
KEYS[4]  aside   as in `copy_in`
KEYS[5]  index   of the slot
KEYS[6]  ahead   as in `copy_in`
KEYS[7]  asides  as in `copy_in`
ARGV[1]  replid  of the life that KEYS[1..2] are named by
ARGV[2]  epoch   of the move, and of the group from now on
ARGV[3]  text    "{slot}:namespace:key"
ARGV[4]  since   the epoch of the group as it is there
ARGV[5]  origin  as in `counters`
ARGV[6]  source  the life that it was copied from
ARGV[7]  stamp   of the group as it is there
ARGV[8].. how many rows of each part it has

Returns {-1} unarmed; or {1, word, replicas, source, stamp}: "here", how many must have it, and what it is a copy of, if it
  came; "refused", the slot does not come by that move; "incomplete"; "differs", in content; or "not_on_disk"

Nothing fails after the first write: there are no names but of what is known to be there.
]]
if not (same_life(ARGV[1]) and is_armed(KEYS[1])) then return {-1} end
local group, aside, index, ahead, text = KEYS[3], KEYS[4], KEYS[5], KEYS[6], ARGV[3]
if not comes(string.match(text, '^{(%d+)}'), KEYS[2], ARGV[2]) then return {1, 'refused', 0} end

local function durability_of(name)
  local terms = redis.call('HGET', name .. ':seg', 'terms')
  local found = terms and string.match(terms, '^%d* %d* %d* %d* (%S+)')
  return found or redis.call('HGET', name .. ':manifest', 'durability') or 'memory'
end

local present = redis.call('HGET', index, text)
if present and tonumber(since_of(present)) >= tonumber(ARGV[4]) then
  drop_aside(KEYS[7], aside)
  drop_aside(KEYS[7], ahead)
  -- Writes something, so that WAIT covers all earlier writes too.
  redis.call('HSET', index, text, present)
  local source, stamp = string.match(present, '^%d+ (%S+) (%S+)$')
  return {1, 'here', tonumber(durability_of(group)) or 0, source or '', stamp or ''}
end

-- Some of the blocks copied ahead may have been dropped at their source since.
local function drop_other_blocks()
  local blocks = ahead .. ':' .. PARTS[BLOCKS]
  for _, name in ipairs(redis.call('HKEYS', blocks)) do
    local is_one = redis.call('ZSCORE', aside .. ':times', name) or redis.call('ZSCORE', aside .. ':pages', name)
    if not is_one then redis.call('HDEL', blocks, name) end
  end
end

local function is_missing(i)
  return size_of(i == BLOCKS and ahead or aside, i) ~= tonumber(ARGV[7 + i])
end

local missing = false
for i = 1, #PARTS do missing = missing or (i ~= BLOCKS and is_missing(i)) end
if not missing then
  drop_other_blocks()
  missing = is_missing(BLOCKS)
end
if missing then
  drop_aside(KEYS[7], aside)
  return {1, 'incomplete', 0}
end
if stamp_of(aside, ahead) ~= ARGV[7] then
  drop_aside(KEYS[7], aside)
  drop_aside(KEYS[7], ahead)
  return {1, 'differs', 0}
end
local durability = durability_of(aside)
if durability == 'disk' and string.sub(ARGV[5], 1, 1) == '0' then return {1, 'not_on_disk', 0} end
unlink_parts(group)
for i, part in ipairs(PARTS) do
  if ARGV[7 + i] ~= '0' then
    redis.call('RENAME', (i == BLOCKS and ahead or aside) .. ':' .. part, group .. ':' .. part)
    redis.call('PERSIST', group .. ':' .. part)
  end
end
local origin = ARGV[5] .. ' ' .. redis.call('HGET', KEYS[1], 'arm')
for _, part in ipairs({':seg', ':manifest'}) do
  local written = redis.call('HEXISTS', group .. part, 'origin') == 1
  if written then redis.call('HSET', group .. part, 'origin', origin) end
end
redis.call('HSET', index, text, ARGV[2] .. ' ' .. ARGV[6] .. ' ' .. ARGV[7])
redis.call('SREM', KEYS[7], aside, ahead)
return {1, 'here', tonumber(durability) or 0, ARGV[6], ARGV[7]}
