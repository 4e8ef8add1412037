-- Unlinks a life's knowledge about the keys of arriving slots, as its stored slots name them.
local function bury_imports(family_of_life, slots)
  for at = 1, #slots, 5 do
    local mode = string.sub(slots, at, at)
    if mode == 'I' or mode == 'B' or mode == 'A' then
      redis.call('UNLINK', string.format('%simport:%d', family_of_life, (at - 1) / 5))
    end
  end
end

-- Unlinks the leftovers of former lives on this server, so that restarts leave nothing behind.
local function bury_former(lives, family, present)
  for _, life in ipairs(redis.call('SMEMBERS', lives)) do
    if life ~= present then
      bury_imports(family .. life .. ':', redis.call('GET', family .. life .. ':slots') or '')
      for _, part in ipairs({'state', 'ctr', 'slots', 'quiet', 'fence', 'copy', 'queues'}) do
        redis.call('UNLINK', family .. life .. ':' .. part)
      end
      redis.call('SREM', lives, life)
    end
  end
end
