-- Decides to pay accounts from a reservation. `decided`: the new state. The decision stands: the reservation does not expire.
function rules.capture(segment, id, time, generation, decided, caller, member)
  local state = ended(segment, id)
  if state then return state end
  certain(segment)
  known(segment, generation, time)
  expire_if_due(segment, id, member)
  state = reservation(segment, id)
  if not state then
    remembered(segment, time)
    return {'unknown'}
  end
  if legs.is_capture(state) then
    if not legs.same(state, decided) then refuse('conflict') end
    return state
  end
  local amount = held(segment, id)
  if not amount then return state end
  local sent, open = meet(part(segment, 'sent')), part(segment, 'open')
  legs.give_rest_back(segment, member, legs.sum(decided), amount, caller)
  put(part(segment, 'due'), member, false)
  put(sent, member, '0')
  put(open, id, string.sub(get(open, id), 1, 8) .. decided)
  return decided
end
