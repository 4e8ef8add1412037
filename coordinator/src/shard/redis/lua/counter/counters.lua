#!lua
--[[
counters: requests to segments of accounts, and to the accounts' manifests.

KEYS[1]  quiet   "map|te|arm" where every slot of that map version is open and no timer runs
KEYS[2]  state   hash: arm, te, grace (epochs; milliseconds of the server's clock)
KEYS[3]  slots   5 bytes a slot
KEYS[4]..        groups "prefix:#{slot}:namespace:key": what is kept lies under these names and ":part" each
ARGV[1]  replid  of the life that KEYS[1..3] are named by
ARGV[2]  map     version of the sender's map
ARGV[3]  by_map  so many groups, from the first, go by that version; the others ask for a look at their slots
ARGV[4]  prefix  of all names
ARGV[5]  origin  "synced 0|1, run id : replication id, place": whether every write is synced, the life, and the
                 address that the server is reached at, each by 12 digits
ARGV[6]  requests an array by MessagePack; each {group, verb, what the verb's function takes...}, and for `ops` what
                 else each alone would take, by MessagePack

Returns {-1} unarmed, nothing written; or {now, quiet 0|1, answers...}. An answer is {word, numbers...}; of a recorded
  request {'recorded', state, value, held}, with the state as its entry says it after the content, and the money after
  it. Amounts of 10^15 and more are {high, low}. The answer to `ops` is that to the last of them; or {'each', answers...}. {'replicas', n, answer}
  where so many replicas must have what was answered: something was written then, so that WAIT waits for all before.

`prefix:complete` is there as long as no manifest of the slots here may have been lost: the origin of the last one made.
The index `prefix:#{slot}` names every group of the slot: a hash of "{slot}:namespace:key", and the slot's epoch when
the group came, or was made.

Without allow-oom: a full server refuses it whole, before its first write. Nothing can fail after that: see parts.lua.
]]
if not same_life(ARGV[1]) then return {-1} end
local quiet, _, arm = armed(redis.call('GET', KEYS[1]), ARGV[2], KEYS[2])
if not arm then return {-1} end
now, prefix, origin, slots = time_ms(), ARGV[4], ARGV[5] .. ' ' .. arm, KEYS[3]
local by_map = quiet and tonumber(ARGV[3]) or 0
local requests = cmsgpack.unpack(ARGV[6])

-- The reason why a group does not answer here, if any.
local function elsewhere(name)
  local mode, epoch = stored(slot_in(name), KEYS[3])
  if mode == '-' then return {'moved', epoch} end
  if mode == 'S' then return {'moving', epoch} end
  if mode ~= 'O' and mode ~= 'A' then return {'coming', epoch} end
end

-- Requests that look up an id.
local HAS_ID = {op = true, refuse = true, confirm = true, cancel = true, finish_transfer = true, find = true, credit = true}

local groups = {}
for _, request in ipairs(requests) do
  local i = request[1]
  local group = groups[i]
  if not group then
    local name = KEYS[3 + i]
    group = {name = name, elsewhere = i > by_map and elsewhere(name), ids = {}}
    groups[i] = group
  end
  if HAS_ID[request[2]] then group.ids[#group.ids + 1] = request[3] end
end

local function segment_at(group, verb, ...)
  if group.segment then return group.segment end
  local segment = load(group)
  if segment then
    look_up(segment, group.ids)
  elseif verb == 'create' or verb == 'replace' then
    segment = create(group, ...)
  else
    refuse('missing')
  end
  group.segment = segment
  return segment
end

-- The answer to a request, and the number of replicas that must have it.
local function answer(group, _, verb, ...)
  local given, durability
  if manifests[verb] then
    given, durability = manifests[verb](group, ...)
  else
    local segment = segment_at(group, verb, ...)
    given, durability = rules[verb](segment, ...), segment.durability
    if segment.is_removed then group.segment = nil end
    if type(given) == 'string' then given = {'recorded', given, segment.value, segment.held} end
  end
  return given, verb ~= 'inspect' and tonumber(durability)
end

-- The answer to a request, and whether it was refused.
local function answered(request)
  local group = groups[request[1]]
  if group.elsewhere then return group.elsewhere, false end
  local done, given, replicas = pcall(answer, group, unpack(request))
  if not done and (type(given) ~= 'table' or given.err) then error(given) end
  if replicas then
    given = {'replicas', replicas, given}
    group.awaited = true
  end
  return given, not done
end

local answers = {now, quiet and 1 or 0}
for at, request in ipairs(requests) do
  local given, refused = answered(request)
  if refused and request[2] == 'ops' then
    given = {'each'}
    for i, single in ipairs(singles(request)) do given[1 + i] = answered(single) end
  end
  answers[2 + at] = given
end
for _, group in pairs(groups) do
  if group.segment then save(group.segment, group.awaited) end
end
return answers
