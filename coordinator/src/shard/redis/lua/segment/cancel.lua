-- A reservation is given back.
function rules.cancel(segment, id, time, generation, caller)
  local state = ended(segment, id)
  if state then return state end
  certain(segment)
  known(segment, generation, time)
  local amount = held(segment, id)
  if not amount then
    timely(segment, time)
    not_frozen(segment, caller)
    has_room(segment)
    record(segment, id, time, NO_CONTENT .. 'X')
    return 'X'
  end
  not_frozen(segment, caller)
  return return_reservation(segment, id, amount, 'X')
end
