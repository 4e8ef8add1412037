#!lua flags=allow-oom
--[[
release: give locks back, or places in queues; the first waiter gets each lock that becomes free.

KEYS[1]  quiet   "map|te|arm" while every slot of that map version is open and no timer runs
KEYS[2]  ctr     the token counter, present if this life is armed
KEYS[3]  state   hash: arm, te, grace (epochs; milliseconds of the server's clock), grace_ms, grace_from
KEYS[4]  slots   5 bytes per slot
KEYS[5]  queues  present while a key of this life may have a queue
KEYS[6]..        records, one per operation: "nonce|...", or hashes with an entry per nonce
ARGV[1]  replid  of the life that KEYS[1..5] are named by
ARGV[2]  map     version of the sender's map
ARGV[3]  by_map  how many operations, from the first, go by that version; the slots of the others are checked
ARGV[4]  top     the counter's upper end
ARGV[5].. nonces, one per operation

Returns {-1} unarmed, nothing written; or {now, answers...}; now is 0 if the time did not matter: 1 deleted,
0 not there, or no longer; there are no answers if all were deleted

Two commands for the whole batch while there are no waiters. Nothing can fail after the first write.
]]
if not same_life(ARGV[1]) then return {-1} end
local found = redis.call('MGET', KEYS[1], KEYS[2], KEYS[5], unpack(KEYS, 6))
if not found[2] then return {-1} end
local quiet, te, arm, grace, _, from
local by_map, shard, waited = 0, nil, {}
if found[3] then
  quiet, te, arm, grace, _, from = armed(found[1], ARGV[2], KEYS[3])
  if not arm then return {-1} end
  by_map = quiet and tonumber(ARGV[3]) or 0
  shard = {now = time_ms(), te = te, arm = arm, in_grace = earlier_count(grace, from), ctr = KEYS[2],
    top = tonumber(ARGV[4])}
  waited = line.waited_for({unpack(KEYS, 6)})
end

local doomed, gone, others = {}, {}, {}
for i = 1, #KEYS - 5 do
  local key = KEYS[5 + i]
  if not waited[key] and not gone[key] and is_of(found[3 + i], ARGV[4 + i]) then
    doomed[#doomed + 1], gone[key] = key, true
  else
    others[#others + 1] = i
  end
end
if doomed[1] then redis.call('DEL', unpack(doomed)) end
local answers = {looked_at_ms}
if not others[1] then return answers end

-- Gives up shares. Returns whether they were held, and the record that is left, if any.
local function give_back(held, nonce)
  local entry = shares.entry(held, nonce)
  if not entry then return false, held end
  return true, shares.remove(held, nonce, entry)
end

-- Gives up a lock that has waiters. `record` is the key's, or false if there is none, or it is not the text of a mutex;
-- its slot is checked if it has to `look`.
local function release(look, queue, key, record, nonce)
  line.drop(queue, nonce)
  record = record or record_at(shard, key, nonce)
  local gave, rest
  if type(record) == 'table' and record.kind then
    gave, rest = give_back(record, nonce)
    record = false
  end
  local holder, _, _, _, _, _, its_arm = parse(record)
  local held = holder == nonce
  local free = held or not record or (holder and its_arm ~= arm)
  local open = free
  if open and look then
    local mode, epoch, import = slot_of(key, KEYS[4])
    open = time_ms() >= grace_of(grace, from, epoch) and (mode == 'O' or (import and import.frees(key)))
  end
  if not (open and line.pass(queue, key, nil, rest, 0)) and held then redis.call('DEL', key) end
  return (held or gave) and 1 or 0
end

local all_deleted = true
for i = 1, #KEYS - 5 do answers[1 + i] = 1 end
for _, i in ipairs(others) do
  local record, nonce, key, answer = found[3 + i], ARGV[4 + i], KEYS[5 + i], 0
  if gone[key] then record = redis.call('MGET', key)[1] end
  local queue = waited[key] and line.queue_of(shard, key)
  if queue then
    answer = release(i > by_map, queue, key, record, nonce)
  elseif is_of(record, nonce) then
    answer = redis.call('DEL', key)
  elseif not record then
    local held = shares.load({now = time_ms()}, key, nonce)
    answer = held and give_back(held, nonce) and 1 or 0
  end
  answers[1 + i], gone[key], all_deleted = answer, true, all_deleted and answer == 1
end
return all_deleted and {answers[1]} or answers
