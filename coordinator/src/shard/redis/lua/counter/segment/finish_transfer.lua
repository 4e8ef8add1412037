-- Finishes a transfer at its source, by the destination's answer. Only this ends a transfer: a source that took the
-- money back by itself would mint it.
function rules.finish_transfer(segment, id, time, generation, credited, caller, member)
  local entry = recorded(segment, id)
  if not entry then
    certain(segment)
    known(segment, generation, time)
    remembered(segment, time)
    return {'unknown'}
  end
  local state = state_of(entry)
  if string.find(state, '^[VRI]') then return state end
  local amount, to = string.match(state, '^S(%d+):(.*)$')
  if not amount then refuse('conflict') end
  must_be_safe(segment.durability)
  amount = amount_of(amount)
  local sent = meet(part(segment, 'sent'))
  meet_final(segment)
  if credited then
    set(segment, 'held', subtract(segment.held, amount))
    state = 'V'
  else
    not_frozen(segment, caller)
    take_back(segment, amount)
    state = 'R'
  end
  put(sent, member, false)
  log.effect(segment, state, amount, log.id_text_of(member) .. to)
  close_open(segment, id, state)
  return state
end
