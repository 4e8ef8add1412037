-- Unlinks a life's knowledge about the keys of arriving slots, as its stored slots name them.
local function bury_imports(family_of_life, slots)
  for at = 1, #slots, 5 do
    local mode = string.sub(slots, at, at)
    if mode == 'I' or mode == 'B' or mode == 'A' then
      redis.call('UNLINK', string.format('%simport:%d', family_of_life, (at - 1) / 5))
    end
  end
end

-- Adds a life to the lives whose counters are here without a gap. Or begins with it: a server that followed another one, or
-- did not load its own log, may lack the last changes of a life, also in counters that nobody has looked at since.
local function keep_lineage(lineage, life, place)
  local info = redis.call('INFO', 'replication', 'persistence', 'commandstats')
  local is_whole = string.find(info, 'second_repl_offset:-1\r', 1, true) and string.find(info, 'aof_enabled:1\r', 1, true)
    and not (string.find(info, 'cmdstat_replicaof:', 1, true) or string.find(info, 'cmdstat_slaveof:', 1, true))
  for _, other in ipairs(redis.call('SMEMBERS', lineage)) do
    is_whole = is_whole and string.match(other, ' (.*)$') == place
  end
  if not is_whole then redis.call('UNLINK', lineage) end
  redis.call('SADD', lineage, life .. ' ' .. place)
end

-- Unlinks the leftovers of former lives on this server, so that restarts leave nothing behind.
local function bury_former(lives, family, present)
  for _, life in ipairs(redis.call('SMEMBERS', lives)) do
    if life ~= present then
      bury_imports(family .. life .. ':', redis.call('GET', family .. life .. ':slots') or '')
      for _, part in ipairs({'state', 'ctr', 'slots', 'open', 'quiet', 'fence', 'copy', 'queues'}) do
        redis.call('UNLINK', family .. life .. ':' .. part)
      end
      redis.call('SREM', lives, life)
    end
  end
end
