-- What tells whether a record is live; nothing if this life is not armed. A function on the text of a mutex; the `shard`
-- of records of shares; and how many milliseconds of the grace are left. It ends in time if this
-- `may_write`.
local function live_records(state, may_write)
  local found = redis.call('HMGET', state, 'arm', 'grace', 'grace_ms', 'grace_from')
  local arm, now = found[1], time_ms()
  if not arm then return nil end
  local grace_ends = may_write and end_of_grace(state, found[2], found[3]) or found[2]
  local grace_left = time_left(grace_ends, found[3])
  local in_grace = grace_left > 0 and found[4] == '0'
  local function is_live(record)
    local nonce, _, _, _, _, _, its_arm = parse(record)
    return nonce and (its_arm == arm or in_grace)
  end
  return is_live, {now = now, arm = arm, in_grace = in_grace}, grace_left
end
