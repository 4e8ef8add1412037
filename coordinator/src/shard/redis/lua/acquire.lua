#!lua
--[[
acquire: take locks, each for a nonce of its own, or say who has them.

KEYS[1]  quiet   "map|te|arm" where every slot of that map version is open and no timer runs
KEYS[2]  ctr     the token counter; every acquire uses up one number
KEYS[3]  state   hash: arm, te, grace, shut (epochs; milliseconds of the server's clock)
KEYS[4]  slots   8 bytes a slot
KEYS[5]..        records, one an operation: "nonce|label|offset|te|base|arm|flags"
ARGV[1]  replid  of the life that KEYS[1..4] are named by
ARGV[2]  map     version of the sender's map
ARGV[3]  top     the counter's upper end
ARGV[4].. head, lease_ms: two an operation; head is "nonce|label|offset", offset 1, 2, ...

Returns {-1} unarmed, nothing written; or {now, quiet 0|1, te, ctr before, answers...}:
  0 granted: token (te, ctr before + offset) · {1, te, ctr} granted before, lease full again
  {2, remaining_ms, label} held · {3, epoch} moved · {4, ms} grace · 5 no tokens · 6 foreign

Without allow-oom: a full server refuses it whole, before its first write. A quiet shard costs one
SET an operation; nothing on that path can fail once something is written.
]]
if not same_life(ARGV[1]) then return {-1} end
local now, count = time_ms(), #KEYS - 4
local grace, shut = 0, 0
local map, te, arm = string.match(redis.call('GET', KEYS[1]) or '', '^(%d+)|(%d+)|(%d+)$')
local quiet = map == ARGV[2]
if not quiet then
  local state = redis.call('HMGET', KEYS[3], 'te', 'arm', 'grace', 'shut')
  if not state[2] then return {-1} end
  te, arm, grace, shut = state[1], state[2], tonumber(state[3]), tonumber(state[4])
end

local ctr = redis.call('INCRBY', KEYS[2], count)
local spent = ctr > tonumber(ARGV[3])
if spent then redis.call('DECRBY', KEYS[2], count) end
local base = ctr - count
local suffix = string.format('|%s|%d|%s|0', te, base, arm)

-- Takes one lock the long way, looking at everything.
local function acquire(key, head, lease)
  if not quiet then
    local mode, epoch = slot_of(key, KEYS[4])
    if now < shut or mode ~= 'O' then return {3, epoch} end
    if now < grace then return {4, grace - now} end
  end
  local record = redis.pcall('GET', key)
  if record then
    local nonce, label, offset, its_te, its_base, its_arm = parse(record)
    if not nonce then return 6 end
    if its_arm == arm then
      if nonce ~= string.match(head, '^[^|]*') then
        return {2, redis.call('PTTL', key), label}
      end
      redis.call('PEXPIRE', key, lease)
      return {1, tonumber(its_te), its_base + offset}
    end
  end
  if spent then return 5 end
  redis.call('SET', key, head .. suffix, 'PX', lease)
  return 0
end

local answers = {now, quiet and 1 or 0, tonumber(te), base}
for i = 1, count do
  local key, head, lease = KEYS[4 + i], ARGV[2 + 2 * i], ARGV[3 + 2 * i]
  if quiet and not spent and redis.call('SET', key, head .. suffix, 'NX', 'PX', lease) then
    answers[4 + i] = 0
  else
    answers[4 + i] = acquire(key, head, lease)
  end
end
return answers
