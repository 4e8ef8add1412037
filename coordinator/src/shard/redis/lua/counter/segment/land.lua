-- Receives a loan: {from, seq, amount}.

-- Whether it may land here: its number is greater than that of the last one.
local function is_new(segment, loan)
  return loan[2] > tonumber(get(part(segment, 'inn'), loan[1]) or 0)
end

local function receive(segment, loan)
  put(part(segment, 'inn'), loan[1], loan[2])
  set_value(segment, add(segment.value, loan[3]))
  log.effect(segment, 'I', loan[3], string.format('%d:%d', loan[1], loan[2]))
end

function rules.land(segment, loan, caller)
  certain(segment)
  if not is_new(segment, loan) then return {'stale'} end
  not_frozen(segment, caller)
  must_fit(segment, loan[3])
  log.meet(segment)
  receive(segment, loan)
  return {'landed'}
end
