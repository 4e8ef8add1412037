-- Keeps a topology record as this member's copy, if its (incarnation, version) is newer.
local function keep_copy(key, n, version, record)
  -- An incarnation has 48 digits, a version 20 at most.
  local held_n, held_version = string.match(redis.call('GETRANGE', key, 0, 79), '^(%x+) (%d+) ')
  if not held_n or held_n < n or (held_n == n and tonumber(held_version) < tonumber(version)) then
    redis.call('SET', key, n .. ' ' .. version .. ' ' .. record)
  end
end
