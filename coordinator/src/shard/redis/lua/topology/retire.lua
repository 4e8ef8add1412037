#!lua flags=allow-oom
--[[
retire: forget a topology whose record names this server no more.

KEYS[1]  pointer  "topology-id home-address"
KEYS[2]  topology the record, where this server was its home
KEYS[3]  fence    greatest incarnation seen
KEYS[4]  lives    set of every life that ever had anything here
KEYS[5]  slots    5 bytes a slot, the mode's letter first; present where this life is armed
KEYS[6]  copy     newest topology record seen
KEYS[7]  state    unlinked, like all that the life was armed with
KEYS[8]  ctr      unlinked
KEYS[9]  quiet    unlinked
KEYS[10] queues   unlinked
KEYS[11] open     unlinked
KEYS[12] lineage  unlinked: the counters left before
KEYS[13] complete unlinked
ARGV[1]  replid   of the life that KEYS[3] and KEYS[5..11] are named by
ARGV[2]  life     its name
ARGV[3]  id       of the topology
ARGV[4]  n        incarnation of its record

Returns {-1} another life · {-2, fence} stale · {0} the pointer names another, or there is none ·
{-3} the record is here, or a slot is not shut: nothing is written · {1} forgotten

The fence stays: it says that this life has a past. Without a pointer a late arming is refused, and
without state so is all else. May be repeated.
]]
if not same_life(ARGV[1]) then return {-1} end
if string.match(redis.call('GET', KEYS[1]) or '', '^%x+') ~= ARGV[3] then return {0} end
local n, _, _, _, id = header(redis.call('GET', KEYS[2]))
if id == ARGV[3] and n >= ARGV[4] then return {-3} end
local slots, shut = redis.call('GET', KEYS[5]) or '', string.byte('-')
for at = 1, #slots, 5 do
  if string.byte(slots, at) ~= shut then return {-3} end
end
local fence = below_fence(KEYS[3], ARGV[4])
if fence then return {-2, fence} end
redis.call('SADD', KEYS[4], ARGV[2])
if id == ARGV[3] then redis.call('DEL', KEYS[2]) end
redis.call('UNLINK', KEYS[1], KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10], KEYS[11], KEYS[12],
  KEYS[13])
return {1}
