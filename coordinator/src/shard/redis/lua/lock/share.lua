#!lua
--[[
share: take shares of semaphores and read-write locks, each for its own nonce, or return why not, and queue.

KEYS[1]  quiet   "map|te|arm" while every slot of that map version is open and no timer runs
KEYS[2]  ctr     the token counter; every acquire uses up the tokens that it asks for
KEYS[3]  state   hash: arm, te, grace (epochs; milliseconds of the server's clock), grace_ms, grace_from
KEYS[4]  slots   5 bytes per slot
KEYS[5]  queues  present while a key of this life may have a queue
KEYS[6]..        records, one per operation: hashes, with an entry per holder
ARGV[1]  replid  of the life that KEYS[1..5] are named by
ARGV[2]  map     version of the sender's map
ARGV[3]  by_map  how many operations, from the first, go by that version; the slots of the others are checked
ARGV[4]  top     the counter's upper end
ARGV[5]  tokens  of all operations together
ARGV[6]  keep_ms how long a ticket lasts after it was last sent
ARGV[7]  waiters the most tickets in one key's queue
ARGV[8]  declared map version at which a namespace was last declared, by the senders' view
ARGV[9].. head, lease_ms, terms, ticket, proof: five per operation; head is as in `acquire`, terms
         "kind|shares|capacity|preferred 0 or 1", ticket "sent|claim_ms|callers" or empty, proof "epoch|left" or empty

Returns {-1} unarmed, nothing written; or {now, quiet 0|1, te, ctr before, ctr after, answers...}, as `acquire`, and:
  {1, te, ctr, tokens, contended 0|1} granted, now or before
  {8, epoch, shares left | -1 not known} the slot moves away
  {10, kind} the key is held as a lock of another kind · 11 the senders' view is outdated

Without allow-oom: a full server refuses the whole call, before its first write.
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

local call = {now = time_ms(), te = te, arm = arm, grace = grace, from = from, ctr = KEYS[2], top = top, spent = spent,
  base = base, slots = KEYS[4], queues = KEYS[5], marked = tonumber(marks[2]) or 0, keep = ARGV[6],
  waiters = tonumber(ARGV[7]), waited = marks[2] and line.waited_for({unpack(KEYS, 6)}) or {}}
local answers = {call.now, quiet and 1 or 0, tonumber(te), base, 0}
for i = 1, #KEYS - 5 do
  local at = 5 * i + 4
  answers[5 + i] = share(call, i > by_map, KEYS[5 + i], unpack(ARGV, at, at + 4))
end
answers[5] = call.counter or spent and base or ctr
return answers
