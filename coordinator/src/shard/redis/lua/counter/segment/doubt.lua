-- A server that came back may have lost the last changes.
local VERSIONS_APART = 4294967296

local function came_back(segment)
  set(segment, 'version', segment.version + VERSIONS_APART)
  if segment.log then
    segment.log.last = segment.log.last + VERSIONS_APART
    log.note(segment)
  end
  if segment.durability == 'memory' then
    set(segment, 'losses', segment.losses + 1)
  else
    set(segment, 'doubtful', true)
  end
end

-- Whether a segment is certainly complete although it was last written in another life, at another place, or by a
-- server that did not sync its writes. `before` and `present` are "synced 0|1, run id : replication id, place, arm epoch".
--
-- Either the same process, which never followed another server: its replication id changes when its first replica
-- comes. Or the same place before and after restarts, of a server that synced every write then and now, and did not
-- get its data from another server at any of them, as after a failover: `arm` keeps the lives of which that is so.
local function nothing_lost(before, present)
  local synced, run, replid, place = string.match(before, '^(%d) ([^:]*)(%S*) (%S*)')
  local synced_now, run_now, place_now = string.match(present, '^(%d) ([^:]*)%S* (%S*)')
  local info = info_of('replication', 'commandstats')
  if not string.find(info, 'second_repl_offset:-1\r', 1, true) then return false end
  if run == run_now then
    return not string.find(info, 'cmdstat_replicaof:', 1, true) and not string.find(info, 'cmdstat_slaveof:', 1, true)
  end
  return synced == '1' and synced_now == '1' and place == place_now
    and redis.call('SISMEMBER', prefix .. ':lineage', run .. replid .. ' ' .. place) == 1
end

-- Whether the same life of a server is armed anew: its address may have led to its replica meanwhile, and nothing that was
-- done there is here. Only where changes without a replica are acknowledged it matters.
local function is_armed_anew(before, present)
  local life, arm = string.match(before, '^%d (%S*) %S* (%d+)$')
  local life_now, arm_now = string.match(present, '^%d (%S*) %S* (%d+)$')
  return life == life_now and arm ~= arm_now
end

-- Whether changes without a replica may be missing that were written by `before`.
local function may_lack(before)
  return string.sub(before, 2) ~= string.sub(origin, 2)
    and (is_armed_anew(before, origin) or not nothing_lost(before, origin))
end

-- Whether no manifest of the slots here was ever lost: `complete` has the origin of the last one that was made. `arm`
-- writes it where there was none yet; what may lose some takes it away.
local function is_complete()
  local made_by = redis.call('GET', prefix .. ':complete')
  return made_by and not may_lack(made_by)
end
