-- The record of a semaphore or of a read-write lock: a hash, with an entry per holder, which ends alone.
--   nonce  "label|shares|offset|tokens|te|base|arm|since_ms|ends_ms|lease_ms"
--   "="    "kind|arm|sum|soonest_ms|saved_ms": the letter of the kind; how many shares the entries of that arming take; no
--          entry ends before soonest_ms; when it was written: if that is to come, the server's clock was set back since
-- It expires with the entry that ends last, or later.
--
-- A record's `shard` has the time, the arm epoch, and whether there is grace: now, arm, in_grace.

local shares = {}

-- The parts of an entry; nothing if it is not one of Ringfence.
local function parse_share(text)
  local label, count, offset, tokens, te, base, arm, since, ends, lease =
    string.match(text or '', '^([^|]*)|(%d+)|(%d+)|(%d+)|(%d+)|(%d+)|(%d+)|(%d+)|(%d+)|(%d+)$')
  return label and {label = label, count = tonumber(count), offset = tonumber(offset), tokens = tonumber(tokens), te = te,
    base = base, arm = arm, since = since, ends = tonumber(ends), lease = lease}
end

-- The text of an entry.
local function share_text(entry)
  return string.format('%s|%d|%d|%d|%s|%s|%s|%d|%d|%s', entry.label, entry.count, entry.offset, entry.tokens,
    entry.te, entry.base, entry.arm, entry.since, entry.ends, entry.lease)
end

-- Writes how many shares are taken, and other fields with it: one command for both.
local function save(held, ...)
  redis.call('HSET', held.key, '=', string.format('%s|%s|%d|%d|%d', held.kind, held.arm, held.sum, held.soonest,
    held.shard.now), ...)
end

-- Drops the entries that have ended, and counts the others anew. None ends later than after its lease. Returns whether
-- any is left.
local function drop_ended(held)
  local now, ended, sum, soonest = held.shard.now, {}, 0, nil
  local all = redis.call('HGETALL', held.key)
  for i = 1, #all, 2 do
    local entry = parse_share(all[i + 1])
    if entry and now <= entry.ends then
      if entry.ends > now + entry.lease then
        entry.ends = now + entry.lease
        redis.call('HSET', held.key, all[i], share_text(entry))
      end
      soonest = math.min(soonest or entry.ends, entry.ends)
      if entry.arm == held.arm then sum = sum + entry.count end
    elseif all[i] ~= '=' then
      ended[#ended + 1] = all[i]
    end
  end
  if not soonest then
    redis.call('DEL', held.key)
    return false
  end
  for from = 1, #ended, 1000 do
    redis.call('HDEL', held.key, unpack(ended, from, math.min(from + 999, #ended)))
  end
  held.sum, held.soonest = sum, soonest
  save(held)
  return true
end

-- The record of shares at `key`, with what it has of `nonce`; false if all of them have ended; `otherwise` if there is none.
function shares.load(shard, key, nonce, otherwise)
  local found = redis.pcall('HMGET', key, '=', nonce)
  local kind, arm, sum, soonest, saved = string.match(found[1] or '', '^([sr])|(%d+)|(%d+)|(%d+)|(%d+)$')
  if not kind then return otherwise end
  local held = {shard = shard, key = key, kind = kind, arm = shard.arm or arm, sum = tonumber(sum),
    soonest = tonumber(soonest), read = {[nonce] = found[2] or ''}}
  -- Entries of another arming take no room, once they could be put back.
  local is_outdated = shard.now > held.soonest or held.arm ~= arm or shard.now < tonumber(saved)
  if is_outdated and not drop_ended(held) then return false end
  return held
end

-- The record of any kind at `key`: the text of a mutex, false if there is none, a record of shares with what it has of
-- `nonce`, or the error of a key that is not Ringfence's.
local function record_at(shard, key, nonce)
  local record = redis.pcall('GET', key)
  if type(record) ~= 'table' then return record end
  return shares.load(shard, key, nonce, record)
end

-- An empty record of shares. Nothing that counts lies at `key`: a `former` record, or nothing.
function shares.new(shard, key, kind, former)
  if former then redis.call('DEL', key) end
  return {shard = shard, key = key, kind = kind, arm = shard.arm, sum = 0, read = {}, is_new = true}
end

-- Whether any entry counts.
function shares.is_live(held)
  return held.shard.in_grace or held.sum > 0
end

-- Whether there is room for `count` shares of a kind beside those of the record, if there is one, and `left` elsewhere.
function shares.fit(held, kind, count, capacity, left)
  if held and shares.is_live(held) then
    if held.kind ~= kind then return false end
    left = left + held.sum
  end
  return left + count <= capacity
end

-- The entry of `nonce`, unless it has ended.
function shares.entry(held, nonce)
  local entry = parse_share(held.read[nonce] or redis.call('HGET', held.key, nonce))
  return entry and held.shard.now <= entry.ends and entry
end

-- The same, if it counts.
function shares.own(held, nonce)
  local entry = shares.entry(held, nonce)
  return entry and (entry.arm == held.arm or held.shard.in_grace) and entry
end

-- Writes an entry of this arming for a full lease, with `count` shares. `entry` may be the former one.
function shares.put(held, nonce, entry, count, lease)
  local ends = held.shard.now + lease
  if entry.arm == held.arm then held.sum = held.sum - entry.count end
  held.sum, held.soonest = held.sum + count, math.min(held.soonest or ends, ends)
  entry.count, entry.arm, entry.ends, entry.lease = count, held.arm, ends, lease
  entry.since = entry.since or held.shard.now
  held.read[nonce] = share_text(entry)
  save(held, nonce, held.read[nonce])
  if held.is_new or redis.call('PTTL', held.key) < tonumber(lease) then redis.call('PEXPIRE', held.key, lease) end
  held.is_new = false
end

-- Removes an entry. Returns the record, or nothing if that was the last one.
function shares.remove(held, nonce, entry)
  if entry.arm == held.arm then held.sum = held.sum - entry.count end
  -- Entries of another arming may be there, which count again once they are renewed.
  if held.sum == 0 and redis.call('HLEN', held.key) == 2 then
    redis.call('DEL', held.key)
    return nil
  end
  held.read[nonce] = nil
  redis.call('HDEL', held.key, nonce)
  save(held)
  return held
end

-- The kind and the entries that count, each as its nonce and its text; or nothing. Writes nothing.
function shares.read(shard, key)
  local all = redis.pcall('HGETALL', key)
  local kind, found = nil, {}
  for i = 1, #all, 2 do
    local entry = parse_share(all[i + 1])
    if all[i] == '=' then
      kind = string.match(all[i + 1], '^[sr]')
    elseif entry and shard.now <= entry.ends and (entry.arm == shard.arm or shard.in_grace) then
      found[#found + 1], found[#found + 2] = all[i], all[i + 1]
    end
  end
  if kind and found[1] then return kind, found end
end
