-- A reservation is given back.
function rules.cancel(segment, id, time, generation, caller)
  certain(segment)
  known(segment, generation, time)
  local state = reservation(segment, id)
  if not state then
    timely(segment, time)
    not_frozen(segment, caller)
    has_room(segment)
    record(segment, id, time, NO_CONTENT .. 'X')
    return 'X'
  end
  local amount = held(segment, id)
  if not amount then return state end
  not_frozen(segment, caller)
  return return_reservation(segment, id, amount, 'X')
end
