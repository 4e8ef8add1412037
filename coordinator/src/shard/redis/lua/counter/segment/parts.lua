-- The parts of a segment in addition to its numbers: hashes, lists and sorted sets, each under its
-- own name. Changes are held back, and written before a part is read as a whole, and at the end of
-- the batch: so a batch costs few commands, for any number of requests.
--
-- A part is read, or checked, before the first change of anything that goes with it: nothing fails
-- after a write, because nothing is written to a key that may have another type.

-- Of the whole batch: the instant, in ms since 1970 on the server's clock; the prefix of all names;
-- the writer of segments, "synced 0|1, life, place"; and the key of the slots' states.
local now, prefix, origin, slots
-- One function per verb: of the segment, and of the request's arguments.
local rules = {}
-- The same for manifests: of the group, and of the request's arguments.
local manifests = {}
-- Functions about a stored manifest, or a copy of one: see manifest.lua.
local manifest = {}

local KINDS = {order = 'list', log = 'list', due = 'sorted', sent = 'sorted', pinned = 'sorted'}
local LENGTHS = {hash = 'HLEN', list = 'LLEN', sorted = 'ZCARD'}

-- Ends the present request with an answer, without any change.
local function refuse(...)
  error({...})
end

-- Reads a key that may have another type; then the request ends there.
local function read(...)
  local found = redis.pcall(...)
  if type(found) == 'table' and found.err then
    if string.find(found.err, 'WRONGTYPE', 1, true) then refuse('foreign') end
    error(found)
  end
  return found
end

local function part(segment, which)
  local found = segment.parts[which]
  if not found then
    found = {name = segment.name .. ':' .. which, kind = KINDS[which] or 'hash', known = {}, changed = {}}
    if OPEN.parts[which] then found.changes, found.number = segment.name .. OPEN.changes, OPEN.parts[which] end
    segment.parts[which] = found
  end
  return found
end

-- The value of `field` in a hash; false if there is none.
local function get(hash, field)
  local value = hash.known[field]
  if value == nil then
    value = read('HGET', hash.name, field)
    hash.known[field], hash.met = value, true
  end
  return value
end

-- Checks that a part can be written.
local function meet(found)
  if not found.met then
    read(LENGTHS[found.kind], found.name)
    found.met = true
  end
  return found
end

-- Sets `field` of a hash to `value`, or the score of member `field` of a sorted set. False removes it.
local function put(found, field, value)
  found.known[field], found.changed[field], found.is_changed = value, value, true
end

-- Most arguments of one command.
local ARGUMENTS_MAX = 2000

local function send(command, name, arguments)
  for from = 1, #arguments, ARGUMENTS_MAX do
    redis.call(command, name, unpack(arguments, from, math.min(from + ARGUMENTS_MAX - 1, #arguments)))
  end
end

-- Notes what changes in a part of open requests, if they are being copied.
function OPEN.note(found)
  local fields = {}
  for field in pairs(found.changed) do fields[#fields + 1] = found.number .. ' ' .. field end
  for from = 1, #fields, ARGUMENTS_MAX do
    local last = math.min(from + ARGUMENTS_MAX - 1, #fields)
    local length = redis.pcall('RPUSHX', found.changes, unpack(fields, from, last))
    if type(length) == 'number' and length > OPEN.changes_max then redis.call('UNLINK', found.changes) end
  end
end

local function write_fields(found)
  local added, dropped, score_first = {}, {}, found.kind == 'sorted'
  for field, value in pairs(found.changed) do
    local at = #added
    if not value then
      dropped[#dropped + 1] = field
    elseif score_first then
      added[at + 1], added[at + 2] = value, field
    else
      added[at + 1], added[at + 2] = field, value
    end
  end
  send(score_first and 'ZADD' or 'HSET', found.name, added)
  send(score_first and 'ZREM' or 'HDEL', found.name, dropped)
end

-- Writes the held-back changes of a part.
local function write(found)
  if not found.is_changed then return end
  write_fields(found)
  if found.changes then OPEN.note(found) end
  found.changed, found.is_changed = {}, false
end

-- The name of a part, for a read of the whole part.
local function whole(found)
  if found.is_changed then write(meet(found)) end
  found.met = true
  return found.name
end

-- Writes `records` as a new block, with that score in its index: `times` by the greatest rank, or `pages`.
local function write_block(segment, index, score, records)
  local block = redis.sha1hex(records)
  redis.call('HSET', segment.name .. ':blocks', block, records)
  redis.call('ZADD', segment.name .. ':' .. index, string.format('%d', score), block)
end

local function drop_block(segment, index, block)
  redis.call('HDEL', segment.name .. ':blocks', block)
  redis.call('ZREM', segment.name .. ':' .. index, block)
  segment.blocks_read[block] = nil
end
