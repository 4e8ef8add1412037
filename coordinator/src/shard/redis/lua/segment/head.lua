-- An account's head, in part `head`: a hash of `version`, `text` and `durability`.
--
-- A head that goes back in time, with a server that lost its last writes, is an older head again: whoever knows a
-- newer one fails to swap, and reads again; segments that are prepared for a newer generation answer `layout`, and
-- whoever is told so plans anew, with times and generations above theirs.
local function head_of(name)
  local found = read('HMGET', name .. ':head', 'version', 'text', 'durability')
  return found[1], found[2], found[3]
end

-- Where replicas are waited for something is written, so that these are waited for too.
local function told(group, answer, durability)
  if tonumber(durability) then redis.call('HSET', group.name .. ':head', 'durability', durability) end
  return answer, durability
end

function heads.read_head(group)
  local version, text, durability = head_of(group.name)
  if not version then return {'head'} end
  return told(group, {'head', tonumber(version), text}, durability)
end

function heads.swap_head(group, expected, text, durability)
  local version, _, its_durability = head_of(group.name)
  if tonumber(version or 0) ~= expected then return told(group, {'swapped', 0}, its_durability) end
  must_be_safe(durability)
  if not version then
    if read('EXISTS', group.name .. ':head') == 1 then refuse('foreign') end
    register(group)
  end
  redis.call('HSET', group.name .. ':head', 'version', expected + 1, 'text', text, 'durability', durability)
  return {'swapped', 1}, durability
end
