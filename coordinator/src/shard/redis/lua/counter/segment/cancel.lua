-- Gives a reservation back.
function rules.cancel(segment, id, time, generation, caller, member)
  local state = ended(segment, id)
  if state then return state end
  certain(segment)
  known(segment, generation, time)
  local amount = held(segment, id)
  state = not amount and reservation(segment, id)
  if state then return state end
  if not amount then
    timely(segment, time)
    not_frozen(segment, caller)
    make_room(segment, 1)
    remembered(segment, time)
    record(segment, id, time, CANCELLED_UNKNOWN)
    return 'X'
  end
  not_frozen(segment, caller)
  return return_reservation(segment, member, amount, 'X')
end
