#!lua flags=allow-oom
--[[
adopt: take over locks that their holders move here from the slot's former shard.

KEYS[1]  quiet   "map|te|arm" while every slot of that map version is open and no timer runs
KEYS[2]  state   hash: arm, te, grace (epochs; milliseconds of the server's clock), grace_ms, grace_from
KEYS[3]  slots   5 bytes per slot
KEYS[4]  queues  present while a key of this life may have a queue
KEYS[5]  ctr     the token counter
KEYS[6]..        records, one per operation: "nonce|label|offset|tokens|te|base|arm|flags|since_ms|lease_ms", or hashes
ARGV[1]  replid  of the life that KEYS[1..5] are named by
ARGV[2]  map     version of the sender's map
ARGV[3].. nonce, label, te, ctr, tokens, own_te, own_ctr, lease_ms, epoch of the move, terms: ten per operation;
          (own_te, own_ctr) is the token at the former shard, and (te, ctr) may be that of another shard; terms are
          "kind|shares", or empty for a mutex

Returns {-1} unarmed, nothing written; or {now, quiet 0|1, answers...}:
  1 adopted, with a full lease · 5 adopted, and there are waiters · 0 refused: still held there, nothing written

After answer 1 the holder removes its record at the former shard. So the answer is 1 only in a slot that comes
here, or has come, by that very move.
]]
if not same_life(ARGV[1]) then return {-1} end
local marks = redis.call('MGET', KEYS[1], KEYS[4])
local now, quiet, _, arm, grace, _, from = time_ms(), armed(marks[1], ARGV[2], KEYS[2])
if not arm then return {-1} end
local waited = marks[2] and line.waited_for({unpack(KEYS, 6)}) or {}
local shard = {now = now, arm = arm, in_grace = earlier_count(grace, from)}

-- Takes over shares, in a slot of that mode, without asking for room: they had it at the former shard.
local function adopt_share(mode, record, key, queue, nonce, label, te, ctr, block, lease, kind, count)
  local held = type(record) == 'table' and record.kind and record or nil
  local own = held and shares.own(held, nonce)
  if own then count = math.min(own.count, count) end
  if own and not above(te, ctr, own.te, own.base, own.offset) then
    shares.put(held, nonce, own, count, lease)
    return 1
  end
  if not own then
    local holder, _, _, _, _, _, its_arm = parse(record)
    if mode == 'O' or (record and not held and not holder) then return 0 end
    if its_arm == arm or (holder and shard.in_grace) then return 0 end
    if held and shares.is_live(held) and held.kind ~= kind then return 0 end
  end
  raise_tokens(KEYS[1], KEYS[5], KEYS[2], te, ctr + block - 1)
  if not held or held.kind ~= kind then held = shares.new(shard, key, kind, record) end
  local entry = {label = label, offset = 0, tokens = 1, te = te, base = ctr}
  if own then entry.arm, entry.count, entry.since = own.arm, own.count, own.since end
  shares.put(held, nonce, entry, count, lease)
  if queue then line.drop(queue, nonce) end
  return 1
end

local function adopt(key, queue, nonce, label, te, ctr, block, own_te, own_ctr, lease, epoch, terms)
  local mode, its_epoch = slot_of(key, KEYS[3])
  if its_epoch ~= tonumber(epoch) or not (mode == 'I' or mode == 'O') then return 0 end
  local record = record_at(shard, key, nonce)
  local kind, count = string.match(terms, '^(%a)|(%d+)$')
  if kind then
    return adopt_share(mode, record, key, queue, nonce, label, te, ctr, block, lease, kind, tonumber(count))
  end
  if type(record) == 'table' then
    if record.err or shares.is_live(record) then return 0 end
    record = false
  end
  local holder, its_label, offset, tokens, its_te, base, its_arm, told, since, its_lease = parse(record)
  local own = holder == nonce
  if own and not above(te, ctr, its_te, base, offset) then
    keep(key, lease, arm, nonce, its_label, offset, tokens, its_te, base, its_arm, told, since, its_lease)
    return 1
  end
  if not own then
    if mode == 'O' or (record and not holder) then return 0 end
    local live = holder and (its_arm == arm or shard.in_grace)
    -- (te, ctr) says nothing about the order at the former shard.
    if live and not above(own_te, own_ctr, its_te, base, offset) then return 0 end
  end
  raise_tokens(KEYS[1], KEYS[5], KEYS[2], te, ctr + block - 1)
  keep(key, lease, arm, nonce, label, 0, 1, te, ctr, nil, own and told or 0, own and since or '0', own and its_lease)
  if queue then line.drop(queue, nonce) end
  return 1
end

local answers = {now, quiet and 1 or 0}
for i = 1, #KEYS - 5 do
  local key, at = KEYS[5 + i], 10 * i - 7
  local queue = waited[key] and line.queue_of({now = now}, key)
  local answer = adopt(key, queue, unpack(ARGV, at, at + 9))
  answers[2 + i] = answer == 1 and queue and 1 + 4 * line.contended(queue) or answer
end
return answers
