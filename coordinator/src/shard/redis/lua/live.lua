-- Makes a look at what is under a name: a record that is live, and how many milliseconds of it are left;
-- or false and 0. Nothing where this life is not armed. Returns the time too, and how many milliseconds
-- of the grace are left.
local function live_records(state)
  local found = redis.call('HMGET', state, 'arm', 'grace')
  local arm, now = found[1], time_ms()
  if not arm then return nil end
  local grace_left = math.max(0, found[2] - now)
  local function live(name)
    local record = redis.pcall('GET', name)
    local nonce, _, _, _, _, _, its_arm = parse(record)
    if not nonce or (its_arm ~= arm and grace_left == 0) then return false, 0 end
    return record, redis.call('PTTL', name)
  end
  return live, now, grace_left
end
