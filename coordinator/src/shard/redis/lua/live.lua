-- Makes a look at what is under a name: a record that is live, and how many milliseconds of it are left;
-- or false and 0. Nothing where this life is not armed. Returns the time too.
local function live_records(state)
  local found = redis.call('HMGET', state, 'arm', 'grace')
  local arm, now = found[1], time_ms()
  if not arm then return nil end
  local in_grace = now < tonumber(found[2])
  local function live(name)
    local record = redis.pcall('GET', name)
    local nonce, _, _, _, _, _, its_arm = parse(record)
    if not nonce or (its_arm ~= arm and not in_grace) then return false, 0 end
    return record, redis.call('PTTL', name)
  end
  return live, now
end
