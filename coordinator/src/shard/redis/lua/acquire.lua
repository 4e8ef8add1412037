#!lua
--[[
acquire: take locks, each for a nonce of its own, or say who has them and queue.

KEYS[1]  quiet   "map|te|arm" where every slot of that map version is open and no timer runs
KEYS[2]  ctr     the token counter; every acquire uses up the tokens it asks for
KEYS[3]  state   hash: arm, te, grace, shut (epochs; milliseconds of the server's clock)
KEYS[4]  slots   5 bytes a slot
KEYS[5]  queues  there while some key of this life may have a queue
KEYS[6]..        records, one an operation: "nonce|label|offset|tokens|te|base|arm|flags"
ARGV[1]  replid  of the life that KEYS[1..5] are named by
ARGV[2]  map     version of the sender's map
ARGV[3]  by_map  so many operations, from the first, go by that version; the others ask for a look at their slots
ARGV[4]  top     the counter's upper end
ARGV[5]  tokens  of all operations together
ARGV[6]  keep_ms a ticket lasts that long after it was last sent
ARGV[7]  waiters tickets in one key's queue, at most
ARGV[8]  more    41 digits an operation: a ticket's sent 20 and claim_ms 10, which is 0 where it does not
         queue; and the epoch it brings a proof of 10, and who waited 1, as in the answer 8, or 0; or empty,
         where none has either
ARGV[9].. head, lease_ms: two an operation; head is "nonce|label|offset|tokens", offset 1 and then 1 + the
         tokens of those before

Returns {-1} unarmed, nothing written; or {now, quiet 0|1, te, ctr before, ctr after, answers...}, now being 0
if it did not matter, and without the answers where all of them are 0:
  0 granted: token (te, ctr before + offset), nobody waits
  {1, te, ctr, tokens, wanted 0|1} granted before, or by the queue: lease full again
  {2, remaining_ms, label, tickets before its own | -1 it has none} held · {3, epoch} moved
  {4, ms} grace · 5 no tokens · 6 foreign · {7, ms} too many waiters
  {8, epoch, 0} the slot moves away; or, instead of 0, nobody holds the key, and there waited: 1 nobody, 2 the
  asker alone, 3 the asker first, before others · {9, epoch} it comes here, and a proof is needed

Without allow-oom: a full server refuses it whole, before its first write. A quiet shard costs one
SET an operation, as long as nobody waits; nothing on that path can fail once something is written.
]]
if not same_life(ARGV[1]) then return {-1} end
local marks = redis.call('MGET', KEYS[1], KEYS[5])
local quiet, te, arm, grace, shut = armed(marks[1], ARGV[2], KEYS[3])
if not arm then return {-1} end

local by_map = quiet and tonumber(ARGV[3]) or 0
local top, tokens = tonumber(ARGV[4]), tonumber(ARGV[5])
local ctr = redis.call('INCRBY', KEYS[2], tokens)
local base, spent = ctr - tokens, ctr > top
if spent then redis.call('DECRBY', KEYS[2], tokens) end
local suffix = string.format('|%s|%d|%s|0', te, base, arm)

local line
local function queues()
  line = line or queueing({now = time_ms(), te = te, arm = arm, ctr = KEYS[2], top = top, queues = KEYS[5],
    marked = tonumber(marks[2]) or 0, keep = ARGV[6], waiters = tonumber(ARGV[7])})
  return line
end
local waited = marks[2] and queues().waited_for({unpack(KEYS, 6)}) or {}

-- The ticket of operation i, nothing if it does not queue; the epoch it brings a proof of; and who waited.
local function more_of(i, head)
  local more = string.sub(ARGV[8], 41 * i - 40, 41 * i)
  local claim, proof = tonumber(string.sub(more, 21, 30)), tonumber(string.sub(more, 31, 40))
  local who = string.sub(more, 41)
  if not claim or claim == 0 then return nil, proof, who end
  local label, tokens = string.match(head, '^[^|]*|([^|]*)|%d+|(%d+)$')
  return {label = label, sent = string.sub(more, 1, 20), tokens = tokens, claim = claim}, proof, who
end

-- Queues for a key, if `ticket` asks for that, and gives `answer`. If somebody has it, the nonce `holder`,
-- asks it back.
local function wait(answer, queue, key, nonce, ticket, holder, told)
  queue = ticket and (queue or queues().queue_of(key, true))
  if not queue then return answer end
  local before, new = line.queue_up(queue, nonce, ticket)
  if not before then return holder and new and {7, new} or answer end
  waited[key] = true
  if not holder then return answer end
  if not new or told == '0' then line.tell(queue, holder, 'wanted', holder) end
  answer[4] = before
  return answer
end

-- Answers that the slot of a key moves away. The ticket that `nonce` has stays until it is its turn, or it
-- is taken along.
local function moves(epoch, queue, nonce, ticket)
  if queue and ticket and redis.call('ZSCORE', queue.places, nonce) then line.queue_up(queue, nonce, ticket) end
  return {8, epoch, 0}
end

-- Gives `nonce` the place that it had where the slot comes from. Returns the queue.
local function come_along(queue, key, nonce, ticket)
  queue = queue or queues().queue_of(key, true)
  if queue then
    waited[key] = true
    line.come_along(queue, nonce, ticket, line.by_proof)
  end
  return queue
end

-- Takes one lock the long way, looking at everything; at its slot if it has to `look`.
local function acquire(look, queue, key, head, lease, ticket, proof, who)
  local nonce, mode, epoch, import = string.match(head, '^[^|]*'), 'O', nil, nil
  if look then
    mode, epoch, import = slot_of(key, KEYS[4])
    local now = time_ms()
    if now < shut or mode == '-' then return {3, epoch} end
    if now < grace then
      if mode == 'S' then return {8, epoch, 0} end
      return wait({4, grace - now}, queue, key, nonce, ticket)
    end
  end
  local record, starved = redis.pcall('GET', key), false
  local holder, label, offset, its_tokens, its_te, its_base, its_arm, told = parse(record)
  if record and not holder then return 6 end
  if import and proof == epoch then
    import.note((who == '3' and 'q' or 'p') .. key)
    if ticket and who ~= '1' then queue = come_along(queue, key, nonce, ticket) end
  end
  local free = its_arm ~= arm
    and (mode == 'O' or (import and import.frees(key, queue and line.first_came_along(queue))))
  if queue and free then
    record, starved = line.pass(queue, key, nonce)
    holder, label, offset, its_tokens, its_te, its_base, its_arm, told = parse(record)
  end
  if its_arm == arm then
    if holder ~= nonce then
      if mode == 'S' then return moves(epoch, queue, nonce, ticket) end
      return wait({2, redis.call('PTTL', key), label, -1}, queue, key, nonce, ticket, holder, told)
    end
    redis.call('PEXPIRE', key, lease)
    if queue then line.drop(queue, nonce) end
    return {1, tonumber(its_te), its_base + offset, tonumber(its_tokens), queue and line.wanted(queue) or 0}
  end
  if mode == 'S' then
    local next, _, others = nil, nil, nil
    if queue then next, _, others = line.first(queue) end
    if not next then return {8, epoch, 1} end
    if next ~= nonce then return moves(epoch, queue, nonce, ticket) end
    line.drop(queue, nonce)
    return {8, epoch, 2 + others}
  end
  if not free then return wait({9, epoch}, queue, key, nonce, ticket) end
  if spent or starved then return 5 end
  redis.call('SET', key, head .. suffix, 'PX', lease)
  return 0
end

local answers, all_granted = {0, quiet and 1 or 0, tonumber(te), base, 0}, true
for i = 1, #KEYS - 5 do
  local key, at, look = KEYS[5 + i], 7 + 2 * i, i > by_map
  local head, lease = ARGV[at], ARGV[at + 1]
  local queue = waited[key] and line.queue_of(key)
  if not look and not spent and not queue
    and redis.call('SET', key, head .. suffix, 'NX', 'PX', lease) then
    answers[5 + i] = 0
  else
    local answer = acquire(look, queue, key, head, lease, more_of(i, head))
    answers[5 + i], all_granted = answer, all_granted and answer == 0
  end
end
answers[1], answers[5] = looked_at_ms, line and line.counter or spent and base or ctr
return all_granted and {unpack(answers, 1, 5)} or answers
