#!lua flags=allow-oom
--[[
renew: extend grants; in grace, put back those the shard has lost.

KEYS[1]  quiet   "map|te|arm" where every slot of that map version is open and no timer runs
KEYS[2]  state   hash: arm, grace, shut (epoch; milliseconds of the server's clock)
KEYS[3]  slots   8 bytes a slot
KEYS[4]..        records, one an operation: "nonce|label|offset|te|base|arm|flags"
ARGV[1]  replid  of the life that KEYS[1..3] are named by
ARGV[2]  map     version of the sender's map
ARGV[3].. nonce, label, te, ctr, lease_ms: five an operation

Returns {-1} unarmed, nothing written; or {now, quiet 0|1, answers...}:
  0 renewed · 1 reclaimed: put back with its own token · 2 lost · {3, epoch} moved

With allow-oom: a full server must not lose the locks it has.
]]
if not same_life(ARGV[1]) then return {-1} end
local now, count = time_ms(), #KEYS - 3
local grace, shut = 0, 0
local map, te, arm = string.match(redis.call('GET', KEYS[1]) or '', '^(%d+)|(%d+)|(%d+)$')
local quiet = map == ARGV[2]
if not quiet then
  local state = redis.call('HMGET', KEYS[2], 'arm', 'grace', 'shut')
  if not state[1] then return {-1} end
  arm, grace, shut = state[1], tonumber(state[2]), tonumber(state[3])
end

-- Whether token (te, ctr) is above the one in a record. Both parts are below 2^53: exact.
local function above(te, ctr, its_te, its_ctr)
  return te > its_te or (te == its_te and ctr > its_ctr)
end

-- A record of this arming.
local function join(nonce, label, offset, te, base)
  return string.format('%s|%s|%d|%s|%s|%s|0', nonce, label, offset, te, base, arm)
end

local function renew(key, nonce, label, te, ctr, lease)
  local record = redis.pcall('GET', key)
  local its_nonce, its_label, offset, its_te, its_base, its_arm = parse(record)
  local own = its_nonce == nonce
  if not quiet then
    local mode, epoch = slot_of(key, KEYS[3])
    if mode ~= 'O' or (now < shut and not own) then return {3, epoch} end
  end
  if own then
    if its_arm == arm then
      redis.call('PEXPIRE', key, lease)
    else
      redis.call('SET', key, join(nonce, its_label, offset, its_te, its_base), 'PX', lease)
    end
    return 0
  end
  if now >= grace or (record and not its_nonce) then return 2 end
  if record and not above(tonumber(te), tonumber(ctr), tonumber(its_te), its_base + offset) then
    return 2
  end
  redis.call('SET', key, join(nonce, label, 0, te, ctr), 'PX', lease)
  return 1
end

local answers = {now, quiet and 1 or 0}
for i = 1, count do
  local at = 5 * i - 2
  answers[2 + i] = renew(KEYS[3 + i], unpack(ARGV, at, at + 4))
end
return answers
