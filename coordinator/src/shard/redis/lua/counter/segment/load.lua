-- A segment is read once per batch. Its changes are written at the end.
local FIELDS = {'value', 'held', 'promised', 'origin', 'doubtful', 'closed', 'frozen', 'awaits_versions', 'log', 'terms',
  'version', 'generation', 'base', 'cut', 'mark', 'newest', 'newest_count', 'packed_count', 'open', 'oldest', 'packed',
  'losses'}

local function text_of(value)
  if type(value) == 'string' then return value end
  if type(value) == 'boolean' then return value and '1' or '0' end
  return decimal(value)
end

-- The terms are one field, with what is not usual, between spaces. What is usual never changes.
local terms = {
  names = {'window', 'at_least', 'skew', 'ids_max', 'durability', 'limits'},
  usual = {86400000, 60000, 10000, 8000000, 'memory', false},
}

function terms.read(segment, text)
  for i, name in ipairs(terms.names) do segment[name] = terms.usual[i] end
  if not text then return end
  for i, said in ipairs({string.match(text, '^(%d*) (%d*) (%d*) (%d*) (%S*) (.*)$')}) do
    if said ~= '' then segment[terms.names[i]] = i <= 4 and tonumber(said) or said end
  end
end

-- Nothing if all are usual.
function terms.text(segment)
  local said, is_usual = {}, true
  for i, name in ipairs(terms.names) do
    said[i] = segment[name] == terms.usual[i] and '' or text_of(segment[name])
    is_usual = is_usual and said[i] == ''
  end
  return not is_usual and table.concat(said, ' ')
end

-- The segment under a group's name, if it exists. A field that is not there is 0, false or empty. A segment that was
-- written in another life may lack its last changes.
local function load(group)
  local found = read('HMGET', group.name .. ':seg', unpack(FIELDS))
  if not found[1] then return nil end
  local segment = {
    name = group.name, parts = {}, changed = {}, blocks_read = {},
    value = amount_of(found[1]), held = amount_of(found[2] or '0'), promised = amount_of(found[3] or '0'),
    origin = found[4], doubtful = found[5] == '1', closed = found[6] == '1', frozen = found[7] or '',
    awaits_versions = found[8] == '1',
  }
  log.open(segment, found[9])
  terms.read(segment, found[10])
  for i = 11, 22 do segment[FIELDS[i]] = tonumber(found[i] or 0) end
  if segment.newest_count + segment.packed_count == 0 then segment.oldest = false end
  if string.sub(segment.origin, 2) ~= string.sub(origin, 2) then
    local is_marked = segment.durability == 'memory' and is_armed_anew(segment.origin, origin)
    if is_marked or not nothing_lost(segment.origin, origin) then came_back(segment) end
    set(segment, 'origin', origin)
  end
  return segment
end

-- Reads the entries of several ids in one command.
local function look_up_in(entries, ids)
  local found = read('HMGET', entries.name, unpack(ids))
  for i, id in ipairs(ids) do entries.known[id] = found[i] end
  entries.met = true
end

local function look_up(segment, ids)
  if not ids[2] then return end
  look_up_in(part(segment, 'ids'), ids)
  if segment.open > 0 then look_up_in(part(segment, 'open'), ids) end
end

-- Writes a new group into its slot's index.
local function register(group)
  local text = string.sub(group.name, #prefix + 3)
  local slot = slot_in(text)
  local index = prefix .. ':#{' .. slot .. '}'
  if read('HEXISTS', index, text) == 1 then return end
  local _, epoch = stored(slot, slots)
  redis.call('HSET', index, text, epoch)
end

-- No segment has had a version as great as the time in ms times this.
local VERSIONS_PER_MS = 1024

-- Makes a new segment a replacement of a lost one.
local function take_place(segment, losses)
  set(segment, 'version', now * VERSIONS_PER_MS)
  if segment.log then
    segment.log.last = segment.version
    log.note(segment)
  end
  set(segment, 'losses', losses)
  set(segment, 'lost', now + segment.skew)
  set(segment, 'doubtful', true)
  set(segment, 'awaits_versions', true)
end

-- A segment with nothing but its credit, created for a plan. It refuses ids from before the plan's beginning. `limits`:
-- "most credit unit", as of `limits_of`; '' for the usual ones. `planned`: the time of the plan. With `losses`, it
-- replaces a lost segment.
local function create(group, generation, base, from, closed, least, copy, window, at_least, skew, ids_max, effects_max,
  effects_for, durability, limits, credit, planned, losses, at)
  must_be_safe(durability)
  clocks.agree(losses and at or planned, skew)
  if read('EXISTS', group.name .. ':seg') == 1 then refuse('foreign') end
  local segment = {
    name = group.name, parts = {}, changed = {}, blocks_read = {}, copy = copy, window = window, at_least = at_least,
    skew = skew, ids_max = ids_max, durability = durability, limits = limits ~= '' and limits,
  }
  register(group)
  local fields = {
    value = credit, held = 0, promised = 0, version = 0, generation = generation, base = base, cut = from, mark = math.max(least, from - 1),
    lost = 0, newest = 0, newest_count = 0, packed_count = 0, open = 0, oldest = false, packed = 0, losses = 0,
    origin = origin, doubtful = false, awaits_versions = false, closed = closed, frozen = '',
    terms = terms.text(segment),
  }
  for field, piece in pairs(manifest.pieces('manifest', copy)) do fields[field] = piece end
  -- What stamps leave out must not change how many fields there are.
  local ALWAYS = {value = true, version = true, losses = true, doubtful = true, frozen = true}
  for field, value in pairs(fields) do
    local text = text_of(value)
    if text ~= '0' and text ~= '' or ALWAYS[field] then set(segment, field, value) else segment[field] = value end
  end
  if effects_max > 0 then
    log.open(segment, string.format('%d %d 0 0 0 0', effects_max, effects_for))
    log.note(segment)
  end
  if losses then take_place(segment, losses) end
  return segment
end

-- Writes the changes; or something else, if the batch must wait for durability.
local function save(segment, is_awaited)
  for _, found in pairs(segment.parts) do write(found) end
  write_chunk(segment)
  log.write(segment)
  if not (segment.is_changed or is_awaited) then return end
  if is_awaited or segment.origin ~= origin then set(segment, 'origin', origin) end
  local arguments = {}
  for field, value in pairs(segment.changed) do
    arguments[#arguments + 1] = field
    arguments[#arguments + 1] = text_of(value)
  end
  redis.call('HSET', segment.name .. ':seg', unpack(arguments))
end
