-- A server that came back may have lost the last changes.
local VERSIONS_APART = 4294967296

local function came_back(segment)
  set(segment, 'version', segment.version + VERSIONS_APART)
  if segment.durability == 'memory' then
    set(segment, 'losses', segment.losses + 1)
  else
    set(segment, 'doubtful', true)
  end
end

-- Whether nothing can be missing of a segment that was last written in another life, at another place, or by a
-- server that did not sync its writes: `before` and `present` are "synced 0|1, run id, replication id, place".
--
-- The same process, which never followed another: its replication id changes when its first replica comes. Or the
-- same place before and after a restart, of a server that synced every write and does, and did not get its data
-- from another: a failover is something else.
local function nothing_lost(before, present)
  local synced, run, place = string.match(before, '^(%d) ([^:]*)%S* (.*)$')
  local synced_now, run_now, place_now = string.match(present, '^(%d) ([^:]*)%S* (.*)$')
  local info = redis.call('INFO', 'replication', 'commandstats')
  if not string.find(info, 'second_repl_offset:-1\r', 1, true) then return false end
  if run == run_now then
    return not string.find(info, 'cmdstat_replicaof:', 1, true) and not string.find(info, 'cmdstat_slaveof:', 1, true)
  end
  return synced == '1' and synced_now == '1' and place == place_now
end
