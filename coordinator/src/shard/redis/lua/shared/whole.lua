-- The whole shard apart from its locks and counters, as the rules in shard/rules see it. The keys of its scripts are
--   state     hash: arm, te, grace, forced (epochs; milliseconds of the server's clock); grace_ms (how long it was set
--             for); grace_from (it concerns slots of this epoch or later); declared (a map version); slots (how often they
--             were changed)
--   ctr       the token counter
--   slots     5 bytes per slot
--   quiet     "map|te|arm" while every slot of that map version is open and no timer runs
--   fence     greatest incarnation seen
--   copy      newest topology record seen: "n version record"
--   pointer   "topology-id home-address"
--   topology  the record, if this server is its home, and the channel on which its versions are told
--   lives     set of every life that ever had anything here
--   lineage   set of "life place": the lives whose counters are here without a gap
--   complete  as in `counters`
--   queues    present while a key of this life may have a queue

-- The texts that are stored.
local function whole_shard(keys, with_slots)
  local texts = redis.call('HMGET', keys[1], 'arm', 'te', 'grace', 'grace_ms', 'grace_from', 'forced', 'declared')
  for i, text in ipairs(redis.call('MGET', unpack(keys, 4, 8))) do texts[7 + i] = text end
  texts[13] = with_slots and redis.call('GET', keys[3])
  return texts
end

-- What differs whenever any of that does, but for the token counter, which rises all the time. Records are long: their
-- first words identify them.
local function stamp_of_whole(keys)
  local parts = redis.call('HMGET', keys[1], 'arm', 'te', 'grace', 'grace_ms', 'grace_from', 'forced', 'declared', 'slots')
  for i, text in ipairs(redis.call('MGET', keys[4], keys[5], keys[7])) do parts[8 + i] = text end
  parts[12] = string.match(redis.call('GETRANGE', keys[6], 0, 79), '^%x+ %d+ ')
  parts[13] = string.match(redis.call('GETRANGE', keys[8], 0, 255), '^[^\n]*')
  for i = 1, 13 do parts[i] = parts[i] and '+' .. #parts[i] .. ':' .. parts[i] or '-' end
  return redis.sha1hex(table.concat(parts))
end

-- The last token: its epoch and counter.
local function last_token(keys)
  return tonumber(redis.call('HGET', keys[1], 'te') or 0), tonumber(redis.call('GET', keys[2]) or 0)
end

-- How many milliseconds the server has been up; -1 if it was emptied, or followed another one, or its clock was set back.
local function uptime_ms()
  local info = info_of('server', 'replication', 'commandstats')
  local followed = not string.find(info, 'second_repl_offset:-1\r', 1, true)
  if followed or string.find(info, 'cmdstat_flush', 1, true) then return -1 end
  local seconds = string.match(info, 'uptime_in_seconds:(%d+)')
  return seconds and 1000 * seconds or -1
end

-- What an arming of this life means for its counters. A server that followed another one, or did not load its own log,
-- may lack the last changes of a life, also in counters that nobody has looked at since: its lineage begins anew.
local function arm_counters(keys, former_arm, made, origin)
  local info = info_of('replication', 'persistence', 'commandstats')
  local is_whole = string.find(info, 'second_repl_offset:-1\r', 1, true) and string.find(info, 'aof_enabled:1\r', 1, true)
    and not (string.find(info, 'cmdstat_replicaof:', 1, true) or string.find(info, 'cmdstat_slaveof:', 1, true))
  local lineage, complete = keys[10], keys[11]
  local life, place = string.match(origin, '^%d (%S*) (%S*)')
  for _, other in ipairs(redis.call('SMEMBERS', lineage)) do
    is_whole = is_whole and string.match(other, ' (.*)$') == place
  end
  if not is_whole then redis.call('UNLINK', lineage) end
  if not is_whole or former_arm or made == 'lost' then redis.call('UNLINK', complete) end
  if made == 'never' then redis.call('SET', complete, origin .. ' ' .. redis.call('HGET', keys[1], 'arm')) end
  redis.call('SADD', lineage, life .. ' ' .. place)
end

-- Runs a commit: see the script of this name.
local function commit_whole(keys, args)
  if stamp_of_whole(keys) ~= args[4] or time_ms() > tonumber(args[5]) then return {0} end
  local former_arm = redis.call('HGET', keys[1], 'arm')
  if args[2] ~= '' then
    bury_former(keys[9], args[6], args[2])
    redis.call('SADD', keys[9], args[2])
  end
  local at = 15
  while args[at] do
    local last = at + tonumber(args[at])
    redis.call(unpack(args, at + 1, last))
    at = last + 1
  end
  if args[3] == '1' then redis.call('HINCRBY', keys[1], 'slots', 1) end
  if args[7] ~= '' then raise_tokens(keys[4], keys[2], keys[1], args[7], args[8]) end
  if args[9] ~= '' then
    local epochs = redis.call('HMGET', keys[1], 'te', 'arm')
    redis.call('SET', keys[4], table.concat({args[9], epochs[1], epochs[2]}, '|'))
  end
  if args[11] ~= '' then
    for from = 1, #args[12], 4 do drop_asides(args[11] .. '{' .. struct.unpack('>I4', args[12], from) .. '}') end
  end
  if args[13] ~= '' then arm_counters(keys, former_arm, args[13], args[14]) end
  -- It may fail: who hears nothing reads the record later.
  if args[10] ~= '' then redis.pcall('PUBLISH', keys[8], args[10]) end
  return {1, last_token(keys)}
end
