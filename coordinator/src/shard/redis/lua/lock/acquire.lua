#!lua
--[[
acquire: take locks, each for its own nonce, or return the holders and queue.

KEYS[1]  quiet   "map|te|arm" while every slot of that map version is open and no timer runs
KEYS[2]  ctr     the token counter; every acquire uses up the tokens that it asks for
KEYS[3]  state   hash: arm, te, grace (epochs; milliseconds of the server's clock), grace_ms, grace_from
KEYS[4]  slots   5 bytes per slot
KEYS[5]  queues  present while a key of this life may have a queue
KEYS[6]..        records, one per operation: "nonce|label|offset|tokens|te|base|arm|flags|since_ms|lease_ms"
ARGV[1]  replid  of the life that KEYS[1..5] are named by
ARGV[2]  map     version of the sender's map
ARGV[3]  by_map  how many operations, from the first, go by that version; the slots of the others are checked
ARGV[4]  top     the counter's upper end
ARGV[5]  tokens  of all operations together
ARGV[6]  keep_ms how long a ticket lasts after it was last sent
ARGV[7]  waiters the most tickets in one key's queue
ARGV[8]  declared map version at which a namespace was last declared, by the senders' view
ARGV[9]  more    45 digits per operation: the ticket's sent 20, claim_ms 10, which is 0 if it does not queue, and
         callers 5; and the epoch of its proof 10, or 0; or empty if no operation has either
ARGV[10].. head, lease_ms: two per operation; head is "nonce|label|offset|tokens", offset is 1 plus the tokens of
         the operations before it

Returns {-1} unarmed, nothing written; or {now, quiet 0|1, te, ctr before, ctr after, answers...}; now is 0
if the time did not matter; there are no answers if all of them are 0:
  0 granted: token (te, ctr before + offset), no waiters
  {1, te, ctr, tokens, contended 0|1} granted before, or by the queue: lease full again
  {2, remaining_ms, label, tickets before its own | -1 it has none} held · {3, epoch} moved
  {4, ms} grace · 5 no tokens · 6 foreign · {7, ms} too many waiters
  {8, epoch, 0 | -1} the slot moves away; 0: the key is free · {10, kind} held as a lock of another kind · {9, epoch} the slot comes here: a proof is required
  11 a namespace was declared since: the senders' view is outdated

Without allow-oom: a full server refuses the whole call, before its first write. A quiet shard runs one
SET per operation while there are no waiters; nothing on that path can fail after its first write.
]]
if not same_life(ARGV[1]) then return {-1} end
local marks = redis.call('MGET', KEYS[1], KEYS[5])
local quiet, te, arm, grace, declared, from = armed(marks[1], ARGV[2], KEYS[3])
if not arm then return {-1} end
if tonumber(ARGV[8]) < declared then return outdated(te, KEYS[2], #KEYS - 5) end

local by_map = quiet and tonumber(ARGV[3]) or 0
local top, tokens = tonumber(ARGV[4]), tonumber(ARGV[5])

local ctr = redis.call('INCRBY', KEYS[2], tokens)
local base, spent = ctr - tokens, ctr > top
if spent then redis.call('DECRBY', KEYS[2], tokens) end
local suffix = string.format('|%s|%d|%s|0|0|', te, base, arm)
local waited = marks[2] and line.waited_for({unpack(KEYS, 6)}) or {}

local others = {}
for i = 1, #KEYS - 5 do
  local key = KEYS[5 + i]
  if i > by_map or spent or waited[key]
    or not redis.call('SET', key, ARGV[8 + 2 * i] .. suffix .. ARGV[9 + 2 * i], 'NX', 'PX', ARGV[9 + 2 * i]) then
    others[#others + 1] = i
  end
end
local answers = {looked_at_ms, quiet and 1 or 0, tonumber(te), base, ctr}
if not others[1] then return answers end

local call = {te = te, arm = arm, grace = grace, from = from, ctr = KEYS[2], top = top, spent = spent, suffix = suffix,
  slots = KEYS[4], queues = KEYS[5], marked = tonumber(marks[2]) or 0, keep = ARGV[6], waiters = tonumber(ARGV[7]),
  more = ARGV[9], waited = waited}
local all_granted = true
for i = 1, #KEYS - 5 do answers[5 + i] = 0 end
for _, i in ipairs(others) do
  local answer = take(call, i, i > by_map, KEYS[5 + i], ARGV[8 + 2 * i], ARGV[9 + 2 * i])
  answers[5 + i], all_granted = answer, all_granted and answer == 0
end
answers[1], answers[5] = looked_at_ms, call.counter or spent and base or ctr
return all_granted and {unpack(answers, 1, 5)} or answers
