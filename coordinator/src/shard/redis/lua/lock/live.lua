-- What tells whether a record is live; nothing if this life is not armed. A function on the text of a mutex; the `shard`
-- of records of shares; and how many milliseconds of the grace are left.
local function live_records(state)
  local found = redis.call('HMGET', state, 'arm', 'grace')
  local arm, now = found[1], time_ms()
  if not arm then return nil end
  local grace_left = math.max(0, found[2] - now)
  local function is_live(record)
    local nonce, _, _, _, _, _, its_arm = parse(record)
    return nonce and (its_arm == arm or grace_left > 0)
  end
  return is_live, {now = now, arm = arm, in_grace = grace_left > 0}, grace_left
end
