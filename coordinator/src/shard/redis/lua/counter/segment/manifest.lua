-- An account's manifest, in part `manifest`: a hash of `version`, `text`, `durability` if it is not memory, and the `origin` of
-- the last write.
--
-- After its server came back, a manifest may be an older one: it is in doubt, and so is one without an origin. Its
-- reader compares it with the copies at the segments, and swaps in the newest, which ends the doubt. The version then
-- rises above all versions that may have been lost.
function manifest.of(name)
  local found = read('HMGET', name .. ':manifest', 'version', 'durability', 'origin')
  local version, durability, before = found[1], found[2], found[3]
  local in_doubt = false
  if version and before ~= origin then
    in_doubt = not before or may_lack(before)
    if not in_doubt then redis.call('HSET', name .. ':manifest', 'origin', origin) end
  end
  return version, durability, in_doubt
end

-- If the call waits for replicas, writes something, so that WAIT covers this change too.
function manifest.told(group, answer, durability)
  if tonumber(durability) then redis.call('HSET', group.name .. ':manifest', 'durability', durability) end
  return answer, durability
end

function manifests.read_manifest(group)
  local version, durability, in_doubt = manifest.of(group.name)
  if not version then return {is_complete() and 'never_made' or 'manifest'} end
  local text = manifest.text(group.name .. ':manifest', 'text')
  return manifest.told(group, {in_doubt and 'manifest_in_doubt' or 'manifest', tonumber(version), text}, durability)
end

function manifests.swap_manifest(group, expected, text, durability)
  local version, its_durability, in_doubt = manifest.of(group.name)
  if tonumber(version or 0) ~= expected then return manifest.told(group, {'swapped', 0}, its_durability) end
  must_be_safe(durability)
  if not version then
    if read('EXISTS', group.name .. ':manifest') == 1 then refuse('foreign') end
    register(group)
    if is_complete() then redis.call('SET', prefix .. ':complete', origin) end
  end
  local next_version = expected + (in_doubt and VERSIONS_APART or 1)
  local fields = {'version', decimal(next_version), 'origin', origin}
  if durability ~= 'memory' then fields[5], fields[6] = 'durability', durability end
  for field, piece in pairs(manifest.pieces('text', text)) do
    fields[#fields + 1], fields[#fields + 2] = field, piece
  end
  redis.call('HSET', group.name .. ':manifest', unpack(fields))
  return {'swapped', 1}, durability
end

-- A server keeps a hash packed as long as none of its values has more than 64 bytes. So a text of moderate length is
-- stored in pieces: `field`, `field2` and so on. The first one begins with their number, a digit.
manifest.PIECE, manifest.PIECES_MAX = 60, 9

function manifest.pieces(field, text)
  local pieces, count = {}, math.max(math.ceil(#text / manifest.PIECE), 1)
  if count > manifest.PIECES_MAX then return {[field] = '1' .. text} end
  for i = 1, count do
    pieces[i == 1 and field or field .. i] = string.sub(text, (i - 1) * manifest.PIECE + 1, i * manifest.PIECE)
  end
  pieces[field] = count .. pieces[field]
  return pieces
end

function manifest.text(name, field)
  local first, fields = read('HGET', name, field) or '', {}
  local count = tonumber(string.sub(first, 1, 1)) or refuse('foreign')
  for i = 2, count do fields[i - 1] = field .. i end
  local others = fields[1] and read('HMGET', name, unpack(fields)) or fields
  return string.sub(first, 2) .. table.concat(others)
end
