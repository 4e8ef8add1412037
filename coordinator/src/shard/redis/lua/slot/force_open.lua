#!lua flags=allow-oom
--[[
force_open: open slots of a shard that was declared dead, without asking it.

KEYS[1]  quiet    "map|te|arm", deleted if a slot opens
KEYS[2]  state    hash: arm, te, grace, forced (epochs; milliseconds of the server's clock); grace_ms (how long it was
                  set for); grace_from (it concerns slots of this epoch or later)
KEYS[3]  slots    5 bytes per slot
KEYS[4]  open     a bit per slot
KEYS[5]  ctr      the token counter
KEYS[6]  fence    greatest incarnation seen
KEYS[7]  copy     newest topology record seen
KEYS[8]  lives    set of every life that ever had state here
KEYS[9]  complete as in `counters`, deleted if a slot opens: the other shard has its counters
ARGV[1]  replid   of the life that KEYS[1..7] are named by
ARGV[2]  life     its name
ARGV[3]  n        incarnation of the sender's record
ARGV[4]  version  of the record
ARGV[5]  record   its text
ARGV[6]  epoch    allotted after no client may use the other shard any more
ARGV[7]  slots    4 bytes per slot
ARGV[8]  grace_ms nothing new is granted in these slots for this long

Returns {-1} unarmed · {-2, fence} stale · {1, grace_left_ms, slots...}: those left unchanged because their guard
is higher, or as high in another mode

An unarmed life keeps the fence and the copy. Grace begins once for an epoch, and is never cut short.
It concerns these slots alone, unless another one runs.
]]
if not same_life(ARGV[1]) then return {-1} end
local fence = below_fence(KEYS[6], ARGV[3])
if fence then return {-2, fence} end
keep_copy(KEYS[7], ARGV[3], ARGV[4], ARGV[5])
redis.call('SADD', KEYS[8], ARGV[2])
local state = redis.call('HMGET', KEYS[2], 'arm', 'te', 'grace', 'forced', 'grace_ms')
if not state[1] then return {-1} end

local epoch, refused, opens = tonumber(ARGV[6]), {}, {}
for at = 1, #ARGV[7], 4 do
  local slot = struct.unpack('>I4', ARGV[7], at)
  local mode, its_epoch = stored(slot, KEYS[3])
  if its_epoch < epoch or (its_epoch == epoch and string.find('SIB', mode)) then
    opens[#opens + 1] = {slot = slot, from = mode}
  elseif its_epoch ~= epoch or mode ~= 'O' then
    refused[#refused + 1] = slot
  end
end

local grace_left = time_left(state[3], state[5])
if #opens > 0 then
  redis.call('DEL', KEYS[1], KEYS[9])
  if tonumber(state[4] or 0) < epoch then
    if grace_left == 0 then redis.call('HSET', KEYS[2], 'grace_from', ARGV[6]) end
    grace_left = math.max(grace_left, ARGV[8])
    redis.call('HSET', KEYS[2], 'forced', ARGV[6], 'grace', time_ms() + grace_left, 'grace_ms', grace_left)
  end
  if tonumber(state[2]) < epoch then
    redis.call('HSET', KEYS[2], 'te', ARGV[6])
    redis.call('SET', KEYS[5], 0)
  end
  for _, its in ipairs(opens) do
    forget_import(KEYS[3], its.slot, its.from)
    put_slot(KEYS[3], KEYS[4], its.slot, its.from, 'O', epoch)
  end
end
return {1, grace_left, unpack(refused)}
