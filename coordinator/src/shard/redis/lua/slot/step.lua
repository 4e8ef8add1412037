#!lua flags=allow-oom
--[[
step: change the mode of migrating slots.

KEYS[1]  quiet   "map|te|arm", deleted unless it is of the sender's map; then it gets the token epoch
KEYS[2]  state   hash: te, arm, grace, grace_ms
KEYS[3]  slots   5 bytes per slot
KEYS[4]  open    a bit per slot
KEYS[5]  ctr     the token counter
KEYS[6]  fence   greatest incarnation seen
KEYS[7]  copy    newest topology record seen
KEYS[8]  lives   set of every life that ever had state here
ARGV[1]  replid  of the life that KEYS[1..7] are named by
ARGV[2]  life    its name
ARGV[3]  n       incarnation of the sender's record
ARGV[4]  version of the record
ARGV[5]  record  its text
ARGV[6]  epoch   of the move
ARGV[7]  mode    the letter of the slots' new mode
ARGV[8]  slots   4 bytes per slot
ARGV[9]  te      the epoch of a token; the next tokens exceed it
ARGV[10] ctr     its counter
ARGV[11] map     the version of this shard's slots in the record, by which these migrate
ARGV[12] asides  as in `copy_in`, up to the slot

Returns {-1} unarmed · {-2, fence} stale · {1, te, ctr, grace_left_ms, slots...}: the last token, and the slots
left unchanged because their guard is higher, or as high in another mode

An unarmed life keeps the fence and the copy. No timer changes.
]]
if not same_life(ARGV[1]) then return {-1} end
local fence = below_fence(KEYS[6], ARGV[3])
if fence then return {-2, fence} end
keep_copy(KEYS[7], ARGV[3], ARGV[4], ARGV[5])
redis.call('SADD', KEYS[8], ARGV[2])
local state = redis.call('HMGET', KEYS[2], 'te', 'arm', 'grace', 'grace_ms')
if not state[2] then return {-1} end

local te, ctr = tonumber(state[1]), tonumber(redis.call('GET', KEYS[5]))
local least_te, least_ctr = tonumber(ARGV[9]), tonumber(ARGV[10])
local raised = te < least_te or (te == least_te and ctr < least_ctr)
if raised then
  te, ctr = least_te, least_ctr
  redis.call('HSET', KEYS[2], 'te', ARGV[9])
  redis.call('SET', KEYS[5], ARGV[10])
end

-- A quiet mark of the map by which these slots migrate does not cover them.
local its_map = string.match(redis.call('GET', KEYS[1]) or '', '^%d+')
if its_map ~= ARGV[11] then
  redis.call('DEL', KEYS[1])
elseif raised then
  redis.call('SET', KEYS[1], its_map .. '|' .. ARGV[9] .. '|' .. state[2])
end

-- The step of a migration that leads to a mode.
local function step_of(mode)
  return (mode == 'S' or mode == 'I') and 1 or 3
end

local answer = {1, te, ctr, time_left(state[3], state[4])}
local epoch, mode = tonumber(ARGV[6]), ARGV[7]
local step, to = step_of(mode), mode == 'I' and 'B' or mode
for at = 1, #ARGV[8], 4 do
  local slot = struct.unpack('>I4', ARGV[8], at)
  local from, its_epoch = stored(slot, KEYS[3])
  local its_mode = (from == 'B' or from == 'A') and 'I' or from
  if its_epoch < epoch or (its_epoch == epoch and step_of(its_mode) < step) then
    forget_import(KEYS[3], slot, from)
    -- Counters that were set aside for a migration that is turned back.
    if mode == 'S' then drop_asides(ARGV[12] .. '{' .. slot .. '}') end
    put_slot(KEYS[3], KEYS[4], slot, from, to, epoch)
  elseif its_epoch ~= epoch or its_mode ~= mode then
    answer[#answer + 1] = slot
  elseif from == 'I' then
    put_slot(KEYS[3], KEYS[4], slot, from, to, epoch)
  end
end
return answer
