#!lua flags=allow-oom
--[[
arm: give this life of the server its slots, epoch and timers, unless it has them of this epoch or a later one.

KEYS[1]  state    hash: arm, te, grace (epochs; milliseconds of the server's clock); grace_ms (how long it was set
                  for); grace_from (it concerns slots of this epoch or later); declared (a map version)
KEYS[2]  ctr      the token counter
KEYS[3]  slots    5 bytes per slot
KEYS[4]  open     a bit per slot
KEYS[5]  quiet    deleted: set by mark_quiet
KEYS[6]  fence    greatest incarnation seen
KEYS[7]  copy     newest topology record seen
KEYS[8]  lives    set of every life that ever had state here
KEYS[9]  pointer  "topology-id home-address"
KEYS[10] lineage  set of "life place": the lives whose counters are here without a gap
KEYS[11] complete as in `counters`
ARGV[1]  replid   of the life that KEYS[1..7] are named by
ARGV[2]  life     its name
ARGV[3]  id       of the topology
ARGV[4]  n        incarnation of its record
ARGV[5]  version  of its record
ARGV[6]  record   its text
ARGV[7]  arm      the epoch allotted to this life
ARGV[8]  te       epoch of the tokens to come
ARGV[9]  slots    packed
ARGV[10] grace_ms no new grants for this long
ARGV[11] uptime   1: less the server's uptime, if it was never emptied and never was a replica
ARGV[12] family   prefix of keys named by a life
ARGV[13] open     which slots are open: a bit per slot, in whole words of 4 bytes
ARGV[14] declared map version at which a namespace was last declared
ARGV[15] place    the address that the server is reached at
ARGV[16] made     "never": no counter was made in these slots, or "lost": a dead shard had some of them; else ""
ARGV[17] origin   as in `counters`, with "never"

Returns {-1} another life · {-2, fence} stale · {-3, reason} refused · {armed 0|1, grace_left_ms}

A life that is armed with an earlier epoch is armed anew. Nothing changes if it has seen a later record than this
one: a step of that may have changed a slot. Grace is not cut short and runs no longer than it was set for,
and no token repeats.
]]
if not same_life(ARGV[1]) then return {-1} end
if string.match(redis.call('GET', KEYS[9]) or '', '^%x+') ~= ARGV[3] then
  return {-3, 'its pointer does not name this topology'}
end
local fence = below_fence(KEYS[6], ARGV[4])
if fence then return {-2, fence} end
local is_newest = keep_copy(KEYS[7], ARGV[4], ARGV[5], ARGV[6])

local now = time_ms()
local former = redis.call('HMGET', KEYS[1], 'arm', 'te', 'grace', 'grace_ms', 'declared')
local anew = former[1]
if anew and (tonumber(former[1]) >= tonumber(ARGV[7]) or not is_newest) then
  return {0, time_left(former[3], former[4])}
end

bury_former(KEYS[8], ARGV[12], ARGV[2])

-- A server that followed another one, or did not load its own log, may lack the last changes of a life, also in counters
-- that nobody has looked at since: its lineage begins anew.
local info = info_of('server', 'replication', 'persistence', 'commandstats')
local followed = not string.find(info, 'second_repl_offset:-1\r', 1, true)
local is_whole = not followed and string.find(info, 'aof_enabled:1\r', 1, true)
  and not (string.find(info, 'cmdstat_replicaof:', 1, true) or string.find(info, 'cmdstat_slaveof:', 1, true))
for _, other in ipairs(redis.call('SMEMBERS', KEYS[10])) do
  is_whole = is_whole and string.match(other, ' (.*)$') == ARGV[15]
end
if not is_whole then redis.call('UNLINK', KEYS[10]) end
if not is_whole or anew or ARGV[16] == 'lost' then redis.call('UNLINK', KEYS[11]) end
if ARGV[16] == 'never' then redis.call('SET', KEYS[11], ARGV[17] .. ' ' .. ARGV[7]) end
redis.call('SADD', KEYS[10], ARGV[2] .. ' ' .. ARGV[15])

local grace = tonumber(ARGV[10])
if ARGV[11] == '1' and not anew then
  if not followed and not string.find(info, 'cmdstat_flush', 1, true) then
    grace = math.max(0, grace - 1000 * string.match(info, 'uptime_in_seconds:(%d+)'))
  end
end
if grace > 0 or not anew then redis.call('HSET', KEYS[1], 'grace_from', 0) end
local te, raises, declared = ARGV[8], true, tonumber(ARGV[14])
if anew then
  grace = math.max(grace, time_left(former[3], former[4]))
  declared = math.max(declared, former[5])
  raises = tonumber(te) > tonumber(former[2])
  if not raises then te = former[2] end
  local slots = redis.call('GET', KEYS[3])
  for at = 1, #slots, 5 do forget_import(KEYS[3], (at - 1) / 5, string.sub(slots, at, at)) end
end
redis.call('SADD', KEYS[8], ARGV[2])
redis.call('SET', KEYS[3], ARGV[9])
redis.call('SET', KEYS[4], ARGV[13])
if raises then redis.call('SET', KEYS[2], 0) end
redis.call('UNLINK', KEYS[5])
redis.call('HSET', KEYS[1], 'arm', ARGV[7], 'te', te, 'declared', string.format('%d', declared))
redis.call('HSET', KEYS[1], 'grace', now + grace, 'grace_ms', grace)
return {1, grace}
