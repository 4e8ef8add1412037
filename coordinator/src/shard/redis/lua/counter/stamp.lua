-- Fields of a segment that a server changes when it finds that the segment came back, or that expire.
local UNSTAMPED = {origin = true, losses = true, doubtful = true, version = true, log = true, frozen = true}
-- If a segment has more open requests than this, the stamp has only the number of the others, which bounds its time.
local STAMPED_MAX = 2000

local function fields_of(name, left_out)
  local found, fields = redis.call('HGETALL', name), {}
  for at = 1, #found, 2 do
    if not left_out[found[at]] then fields[#fields + 1] = found[at] .. '=' .. found[at + 1] end
  end
  table.sort(fields)
  return fields
end

-- Open requests in the order of a sorted set that has their keys, and their records.
local function open_of(name, sorted)
  local members, keys = redis.call('ZRANGE', name .. sorted, 0, STAMPED_MAX - 1), {}
  for i, member in ipairs(members) do keys[i] = string.sub(member, -18) end
  if not keys[1] then return members end
  for i, entry in ipairs(redis.call('HMGET', name .. ':open', unpack(keys))) do
    members[i] = members[i] .. '=' .. tostring(entry)
  end
  return members
end

-- A digest of a group's content, the same for a group and its copy; empty if there is none. The names of blocks are
-- digests of their content, and `order` has the content of `ids`.
local function stamp_of(name, blocks)
  local sizes = {}
  for i = 1, #PARTS do sizes[i] = size_of(i == BLOCKS and blocks or name, i) end
  local digests = {table.concat(sizes, ' ')}
  if not string.find(digests[1], '[1-9]') then return '' end
  for _, content in ipairs({
    fields_of(name .. ':manifest', {origin = true}),
    fields_of(name .. ':seg', UNSTAMPED),
    fields_of(name .. ':out', {}),
    fields_of(name .. ':inn', {}),
    redis.call('LRANGE', name .. ':order', 0, -1),
    redis.call('ZRANGE', name .. ':times', 0, -1, 'WITHSCORES'),
    redis.call('LRANGE', name .. ':log', 0, -1),
    redis.call('ZRANGE', name .. ':pages', 0, -1, 'WITHSCORES'),
    open_of(name, ':due'),
    open_of(name, ':sent'),
    open_of(name, ':pinned'),
  }) do
    digests[#digests + 1] = redis.sha1hex(table.concat(content, ' '))
  end
  return redis.sha1hex(table.concat(digests, ' '))
end
