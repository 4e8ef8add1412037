#!lua flags=allow-oom
--[[
confirm: agree on the tokens of grants that other shards made too; extend grants, if they are here.

KEYS[1]  quiet   "map|te|arm" while every slot of that map version is open and no timer runs
KEYS[2]  ctr     the token counter
KEYS[3]  state   hash: arm, te, grace (epochs; milliseconds of the server's clock), grace_ms, grace_from
KEYS[4]  slots   5 bytes per slot
KEYS[5]  queues  present while a key of this life may have a queue
KEYS[6]..        records, one per operation: "nonce|label|offset|tokens|te|base|arm|flags|since_ms|lease_ms", or hashes
ARGV[1]  replid  of the life that KEYS[1..5] are named by
ARGV[2]  map     version of the sender's map
ARGV[3]  by_map  how many operations, from the first, go by that version; the slots of the others are checked
ARGV[4].. nonce, label, te, ctr, tokens, lease_ms, install 0|1: seven per operation

Returns {-1} unarmed, nothing written; or {now, quiet 0|1, answers...}; there are no answers if all of them are 0:
  0 confirmed · 1 installed: no record was live · either + 4: there are waiters
  2 lost: another nonce has the key, or none has it · {3, epoch} moved · {4, ms} grace · {8, epoch, -1} the slot moves

Only in an open slot: a sealed one has told its last token to the mover, and one that comes here has yet to hear of
those of its former shard.
]]
if not same_life(ARGV[1]) then return {-1} end
local marks = redis.call('MGET', KEYS[1], KEYS[5])
local quiet, te, arm, grace, _, from = armed(marks[1], ARGV[2], KEYS[3])
if not arm then return {-1} end
local by_map = quiet and tonumber(ARGV[3]) or 0
local shard = {now = time_ms(), te = te, arm = arm}
local waited = marks[2] and line.waited_for({unpack(KEYS, 6)}) or {}

local function confirm(look, key, queue, nonce, label, te, ctr, tokens, lease, install)
  if look then
    local mode, epoch = slot_of(key, KEYS[4])
    local now, ends = time_ms(), grace_of(grace, from, epoch)
    if mode == '-' then return {3, epoch} end
    if now < ends and mode ~= 'S' then return {4, ends - now} end
    if mode ~= 'O' then return {8, epoch, -1} end
  end
  local record = record_at(shard, key, nonce)
  if type(record) == 'table' then
    if record.err then return 2 end
    local own = shares.own(record, nonce)
    if own then
      shares.put(record, nonce, own, own.count, lease)
      return 0
    end
    if shares.is_live(record) then return 2 end
    record = false
  end
  local holder, its_label, offset, its_tokens, its_te, base, its_arm, told, since, its_lease = parse(record)
  if record and not holder then return 2 end
  local live = its_arm == arm
  local own = live and holder == nonce
  if own and not above(te, ctr, its_te, base, offset) then
    keep(key, lease, arm, nonce, its_label, offset, its_tokens, its_te, base, its_arm, told, since, its_lease)
    return 0
  end
  if not own and (live or install ~= '1') then return 2 end
  raise_tokens(KEYS[1], KEYS[2], KEYS[3], te, string.format('%d', ctr + tokens - 1))
  keep(key, lease, arm, nonce, label, 0, tokens, te, ctr, nil, own and told or 0, own and since or '0',
    own and its_lease)
  if own then return 0 end
  if queue then line.drop(queue, nonce) end
  return 1
end

local answers, all_confirmed = {0, quiet and 1 or 0}, true
for i = 1, #KEYS - 5 do
  local key, at = KEYS[5 + i], 7 * i - 3
  local queue = waited[key] and line.queue_of(shard, key)
  local answer = confirm(i > by_map, key, queue, unpack(ARGV, at, at + 6))
  if queue and (answer == 0 or answer == 1) then answer = answer + 4 * line.contended(queue) end
  answers[2 + i], all_confirmed = answer, all_confirmed and answer == 0
end
answers[1] = time_ms()
return all_confirmed and {unpack(answers, 1, 2)} or answers
