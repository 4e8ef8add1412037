-- The parts of a group, each under the group's name and its own: hashes first, then lists, then sorted sets.
local PARTS, HASHES, LISTS = {'manifest', 'seg', 'ids', 'open', 'blocks', 'out', 'inn',
  'order', 'log', 'times', 'due', 'sent', 'pinned', 'pages'}, 7, 9
local BLOCKS = 5
-- What is copied before a slot is sealed, of groups with more than `many` open requests: the parts with a row for each,
-- by their names and in their order. `changes`: a list of rows that changed since that copy began, "part field" each,
-- behind a text of the copy. A copy that falls behind by more than `changes_max` begins again.
local OPEN = {parts = {open = 4, due = 11, sent = 12, pinned = 13}, order = {4, 11, 12, 13}, many = 2048,
  changes = ':changes', changes_max = 65536}

local function is_list(i)
  return i > HASHES and i <= LISTS
end

-- The number of rows in a part of a group, or of a group put aside.
local function size_of(name, i)
  return redis.call((i <= HASHES and 'HLEN') or (is_list(i) and 'LLEN') or 'ZCARD', name .. ':' .. PARTS[i])
end

local function unlink_parts(name)
  local names = {}
  for i, part in ipairs(PARTS) do names[i] = name .. ':' .. part end
  names[#names + 1] = name .. OPEN.changes
  redis.call('UNLINK', unpack(names))
end

-- The entry of a group in its slot's index: the epoch of the move by which it came, or after which it was made; and, if
-- it came, the life from which it was copied, and its stamp.
local function since_of(indexed)
  return string.match(indexed, '^%d+')
end

-- Whether a slot leaves, or has left, by that move.
local function leaves(slot, slots, epoch)
  local mode, its_epoch = stored(slot, slots)
  return (mode == 'S' or mode == '-') and its_epoch == tonumber(epoch)
end

-- Whether it comes, or has come, by that move.
local function comes(slot, slots, epoch)
  local mode, its_epoch = stored(slot, slots)
  return (mode == 'B' or mode == 'A' or mode == 'I' or mode == 'O') and its_epoch == tonumber(epoch)
end

-- Whether no step of that move, or of a later one, has reached it.
local function is_before(slot, slots, epoch)
  local _, its_epoch = stored(slot, slots)
  return its_epoch < tonumber(epoch)
end

local function is_armed(state)
  return redis.call('HEXISTS', state, 'arm') == 1
end
