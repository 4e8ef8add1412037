#!lua flags=allow-oom
--[[
renew: extend grants, perhaps for fewer shares; in grace, put back records that the shard has lost.

KEYS[1]  quiet   "map|te|arm" while every slot of that map version is open and no timer runs
KEYS[2]  ctr     the token counter
KEYS[3]  state   hash: arm, te, grace (epochs; milliseconds of the server's clock), grace_ms, grace_from
KEYS[4]  slots   5 bytes per slot
KEYS[5]  queues  present while a key of this life may have a queue
KEYS[6]..        records, one per operation: "nonce|label|offset|tokens|te|base|arm|flags|since_ms|lease_ms", or hashes
ARGV[1]  replid  of the life that KEYS[1..5] are named by
ARGV[2]  map     version of the sender's map
ARGV[3]  by_map  how many operations, from the first, go by that version; the slots of the others are checked
ARGV[4]  top     the counter's upper end
ARGV[5].. nonce, label, te, ctr, lease_ms, terms: six per operation; terms are "kind|shares", or empty for a mutex

Returns {-1} unarmed, nothing written; or {now, quiet 0|1, answers...}; there are no answers if all of them are 0:
  0 renewed · 1 reclaimed: put back with its own token · either + 4: there are waiters
  {8, epoch, one of these} and the slot is sealed
  2 lost: and the first waiter has got it, if it was free · {3, epoch} moved

With allow-oom: a full server must not lose the locks that it has.
]]
if not same_life(ARGV[1]) then return {-1} end
local marks = redis.call('MGET', KEYS[1], KEYS[5])
local quiet, te, arm, grace, _, from = armed(marks[1], ARGV[2], KEYS[3])
if not arm then return {-1} end
local by_map = quiet and tonumber(ARGV[3]) or 0
local now = time_ms()
local shard = {now = now, te = te, arm = arm, in_grace = earlier_count(grace, from), ctr = KEYS[2], top = tonumber(ARGV[4])}
local waited = marks[2] and line.waited_for({unpack(KEYS, 6)}) or {}

-- Passes a key without a live mutex on, and its record of shares, if it has one; in a slot of that mode, out of grace.
local function pass_on(mode, import, key, queue, held)
  local is_open = queue and (mode == 'O' or (import and import.frees(key)))
  if is_open then line.pass(queue, key, nil, held, 0) end
end

-- The same as `renew`, of shares. They are put back without asking for room: all holders of before had room.
local function renew_share(look, key, queue, nonce, label, te, ctr, lease, kind, count)
  local record, mode, epoch, import, in_grace = record_at(shard, key, nonce), 'O', nil, nil, false
  local held = type(record) == 'table' and record.kind and record or nil
  local own = held and shares.own(held, nonce)
  if look then
    mode, epoch, import = slot_of(key, KEYS[4])
    if mode == '-' then return {3, epoch} end
    in_grace = now < grace_of(grace, from, epoch)
  end
  local sealed = mode == 'S' and epoch
  if own then
    local fewer = count < own.count
    shares.put(held, nonce, own, math.min(count, own.count), lease)
    if fewer and not in_grace then pass_on(mode, import, key, queue, held) end
    return 0, sealed
  end
  local holder, _, _, _, _, _, its_arm = parse(record)
  if record and not held and not holder then return 2 end
  if not in_grace then
    if its_arm ~= arm then pass_on(mode, import, key, queue, held) end
    return 2
  end
  if holder or (held and held.kind ~= kind) then return 2 end
  shard.te = raise_tokens(KEYS[1], KEYS[2], KEYS[3], te, ctr)
  held = held or shares.new(shard, key, kind, record)
  shares.put(held, nonce, {label = label, offset = 0, tokens = 1, te = te, base = ctr}, count, lease)
  if queue then line.drop(queue, nonce) end
  return 1, sealed
end

-- The outcome of a renewal, which may have to `look` at its slot; and, if it was kept, the epoch that its
-- slot is sealed at.
local function renew(look, key, queue, nonce, label, te, ctr, lease, terms)
  local kind, count = string.match(terms, '^(%a)|(%d+)$')
  if kind then return renew_share(look, key, queue, nonce, label, te, ctr, lease, kind, tonumber(count)) end
  local record, held = record_at(shard, key, nonce), nil
  if type(record) == 'table' and record.kind then held, record = record, false end
  local holder, its_label, offset, tokens, its_te, base, its_arm, told, since, its_lease = parse(record)
  local own, mode, epoch, import, in_grace = holder == nonce, 'O', nil, nil, false
  if look then
    mode, epoch, import = slot_of(key, KEYS[4])
    if mode == '-' then return {3, epoch} end
    in_grace = now < grace_of(grace, from, epoch)
  end
  local sealed = mode == 'S' and epoch
  -- A sealed slot has answered that this key is free: that must stay true.
  own = own and (not sealed or its_arm == arm or shard.in_grace)
  if own then
    keep(key, lease, arm, nonce, its_label, offset, tokens, its_te, base, its_arm, told, since, its_lease)
    return 0, sealed
  end
  if record and not holder then return 2 end
  if not in_grace then
    if its_arm ~= arm then pass_on(mode, import, key, queue, held) end
    return 2
  end
  if held then return 2 end
  if record and not above(te, ctr, its_te, base, offset) then return 2 end
  shard.te = raise_tokens(KEYS[1], KEYS[2], KEYS[3], te, ctr)
  keep(key, lease, arm, nonce, label, 0, 1, te, ctr, nil, 0, '0')
  if queue then line.drop(queue, nonce) end
  return 1, sealed
end

local answers, all_renewed = {now, quiet and 1 or 0}, true
for i = 1, #KEYS - 5 do
  local key, at = KEYS[5 + i], 6 * i - 1
  local queue = waited[key] and line.queue_of(shard, key)
  local answer, sealed = renew(i > by_map, key, queue, unpack(ARGV, at, at + 5))
  local kept = answer == 0 or answer == 1
  if kept and queue then answer = answer + 4 * line.contended(queue) end
  if kept and sealed then answer = {8, sealed, answer} end
  answers[2 + i], all_renewed = answer, all_renewed and answer == 0
end
return all_renewed and {unpack(answers, 1, 2)} or answers
