-- Keeps a topology record as this member's copy, if its (incarnation, version) is newer. Returns whether it is the
-- newest that this member has seen.
local function keep_copy(key, n, version, record)
  -- An incarnation has 48 digits, a version 20 at most.
  local held_n, held_version = string.match(redis.call('GETRANGE', key, 0, 79), '^(%x+) (%d+) ')
  if held_n == n and held_version == version then return true end
  if held_n and (held_n > n or (held_n == n and tonumber(held_version) > tonumber(version))) then return false end
  redis.call('SET', key, n .. ' ' .. version .. ' ' .. record)
  return true
end
