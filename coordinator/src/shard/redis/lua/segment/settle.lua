-- A transfer's source hears what the destination said. Nothing else ever ends it: a source that took the money
-- back by itself would mint it.
function rules.settle(segment, id, time, generation, credited, caller)
  local entry = recorded(segment, id)
  if not entry then
    certain(segment)
    known(segment, generation, time)
    remembered(segment, time)
    return {'unknown'}
  end
  local state = state_of(entry)
  if string.find(state, '^[VRI]') then return state end
  local amount = string.match(state, '^S(%d+):')
  if not amount then refuse('conflict') end
  must_be_safe(segment.durability)
  amount = amount_of(amount)
  local sent = meet(part(segment, 'sent'))
  if credited then
    set(segment, 'held', subtract(segment.held, amount))
    state = 'V'
  else
    not_frozen(segment, caller)
    take_back(segment, amount)
    state = 'R'
  end
  put(sent, id, false)
  put(part(segment, 'ids'), id, string.sub(entry, 1, 16) .. state)
  return state
end
