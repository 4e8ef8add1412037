-- Finishes a transfer or a capture at its source, by the destinations' answers. Only this ends it: a source that took the
-- money back by itself would mint it.
function rules.finish_transfer(segment, id, time, generation, refused, caller, member)
  local entry = recorded(segment, id)
  if not entry then
    certain(segment)
    known(segment, generation, time)
    remembered(segment, time)
    return {'unknown'}
  end
  local state = state_of(entry)
  if string.find(state, '^[DH]') then refuse('conflict') end
  if not string.find(state, '^[SK]') then return state end
  must_be_safe(segment.durability)
  local amount, to = string.match(state, '^S(%d+):(.*)$')
  local all = amount and {{amount_of(amount), to}} or legs.of(state)
  local is_refused, back = {}, 0
  for _, name in ipairs(refused) do is_refused[name] = true end
  for _, leg in ipairs(all) do
    if is_refused[leg[2]] then back = back + 1 end
  end
  if back > 0 then not_frozen(segment, caller) end
  local sent = meet(part(segment, 'sent'))
  meet_final(segment)
  for _, leg in ipairs(all) do
    if is_refused[leg[2]] then
      take_back(segment, leg[1])
    else
      set(segment, 'held', subtract(segment.held, leg[1]))
    end
    log.effect(segment, is_refused[leg[2]] and 'R' or 'V', leg[1], log.id_text_of(member) .. leg[2])
  end
  local of_capture = legs.is_capture(state)
  if back == #all then state = of_capture and 'X' or 'R' else state = of_capture and 'C' or 'V' end
  put(sent, member, false)
  close_open(segment, id, state)
  return state
end
