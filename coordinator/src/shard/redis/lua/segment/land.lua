-- A loan arrives: {from, seq, amount}.

local function is_next(segment, loan)
  return loan[2] == tonumber(get(part(segment, 'inn'), loan[1]) or 0) + 1
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
