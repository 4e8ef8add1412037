#!lua flags=allow-oom
--[[
mark_quiet: mark this life as quiet at a map version, if every slot is open and grace is over.

KEYS[1]  quiet   "map|te|arm", deleted first, unless it is of a later map version
KEYS[2]  state   hash: te, arm, grace, grace_ms, declared
KEYS[3]  open    a bit per slot
KEYS[4]  fence   greatest incarnation seen
KEYS[5]  copy    newest topology record seen
KEYS[6]  lives   set of every life that ever had state here
ARGV[1]  replid  of the life that KEYS[1..5] are named by
ARGV[2]  life    its name
ARGV[3]  n       incarnation of the sender's record
ARGV[4]  version of the record
ARGV[5]  record  its text
ARGV[6]  map     the version of this shard's slots
ARGV[7]  mine    its slots of this shard, without the migrating ones: a bit per slot, in whole words of 4 bytes

Returns {-1} unarmed · {-2, fence} stale · {1} quiet now · {0} not: a slot is not open, grace runs, a namespace was
  declared since, or it is quiet at a later version: engines that do not know that version must not take it from those
  that do

An unarmed life keeps the fence and the copy. Quiet implies, for this map version, every check that an operation
without a map version makes.
]]
if not same_life(ARGV[1]) then return {-1} end
local fence = below_fence(KEYS[4], ARGV[3])
if fence then return {-2, fence} end
keep_copy(KEYS[5], ARGV[3], ARGV[4], ARGV[5])
redis.call('SADD', KEYS[6], ARGV[2])
local state = redis.call('HMGET', KEYS[2], 'te', 'arm', 'grace', 'declared', 'grace_ms')
if not state[2] then return {-1} end
if tonumber(ARGV[6]) < tonumber(state[4]) then return {0} end
local its_map, its_te, its_arm = string.match(redis.call('GET', KEYS[1]) or '', '^(%d+)|(%d+)|(%d+)$')
local later = its_map and tonumber(its_map) > tonumber(ARGV[6])
if later and its_te == state[1] and its_arm == state[2] then return {0} end
redis.call('DEL', KEYS[1])
if ARGV[6] == '0' then return {0} end -- the version that asks for every check
if time_ms() < end_of_grace(KEYS[2], state[3], state[5]) then return {0} end
local open = redis.call('GETRANGE', KEYS[3], 0, #ARGV[7] - 1)
open = open .. string.rep('\0', #ARGV[7] - #open)
if open ~= ARGV[7] then
  for at = 1, #ARGV[7], 4 do
    local is_open, mine = struct.unpack('>I4', open, at), struct.unpack('>I4', ARGV[7], at)
    if bit.band(is_open, mine) ~= bit.tobit(mine) then return {0} end
  end
end
redis.call('SET', KEYS[1], ARGV[6] .. '|' .. state[1] .. '|' .. state[2])
return {1}
