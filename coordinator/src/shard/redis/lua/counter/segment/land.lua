-- Receives a loan: {from, seq, amount}.

-- Whether it may land here now: its number is the next one, or any greater one if changes were lost.
local function is_next(segment, loan)
  local landed = tonumber(get(part(segment, 'inn'), loan[1]) or 0)
  return loan[2] == landed + 1 or (segment.losses > 0 and loan[2] > landed)
end

local function receive(segment, loan)
  put(part(segment, 'inn'), loan[1], loan[2])
  set_value(segment, add(segment.value, loan[3]))
end

function rules.land(segment, loan, caller)
  certain(segment)
  if not is_next(segment, loan) then return {'stale'} end
  not_frozen(segment, caller)
  must_fit(segment, loan[3])
  receive(segment, loan)
  return {'landed'}
end
