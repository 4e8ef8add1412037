-- An account's manifest, in part `manifest`: a hash of `version`, `text`, `durability`, and the `origin` of the last write.
--
-- After its server came back, a manifest may be an older one: it is in doubt, and so is one without an origin. Its
-- reader compares it with the copies at the segments, and swaps in the newest, which ends the doubt. The version then
-- rises above all versions that may have been lost.
local function manifest_of(name)
  local found = read('HMGET', name .. ':manifest', 'version', 'text', 'durability', 'origin')
  local version, text, durability, before = found[1], found[2], found[3], found[4]
  local in_doubt = false
  if version and before ~= origin then
    in_doubt = not before or may_lack(before)
    if not in_doubt then redis.call('HSET', name .. ':manifest', 'origin', origin) end
  end
  return version, text, durability, in_doubt
end

-- If the call waits for replicas, writes something, so that WAIT covers this change too.
local function told(group, answer, durability)
  if tonumber(durability) then redis.call('HSET', group.name .. ':manifest', 'durability', durability) end
  return answer, durability
end

function manifests.read_manifest(group)
  local version, text, durability, in_doubt = manifest_of(group.name)
  if not version then return {is_complete() and 'never_made' or 'manifest'} end
  return told(group, {in_doubt and 'manifest_in_doubt' or 'manifest', tonumber(version), text}, durability)
end

function manifests.swap_manifest(group, expected, text, durability)
  local version, _, its_durability, in_doubt = manifest_of(group.name)
  if tonumber(version or 0) ~= expected then return told(group, {'swapped', 0}, its_durability) end
  must_be_safe(durability)
  if not version then
    if read('EXISTS', group.name .. ':manifest') == 1 then refuse('foreign') end
    register(group)
    if is_complete() then redis.call('SET', prefix .. ':complete', origin) end
  end
  local next_version = expected + (in_doubt and VERSIONS_APART or 1)
  redis.call('HSET', group.name .. ':manifest', 'version', decimal(next_version), 'text', text, 'durability', durability,
    'origin', origin)
  return {'swapped', 1}, durability
end
