-- A reservation is spent.

-- What became of a reservation; false if it is not recorded. An id that was used for something else is a conflict.
local function reservation(segment, id)
  local entry = get(part(segment, 'ids'), id)
  local state = entry and state_of(entry)
  if state and string.find(state, '^[DSVR]') then refuse('conflict') end
  return state
end

function rules.confirm(segment, id, time, generation)
  certain(segment)
  known(segment, generation, time)
  expire_if_due(segment, id)
  local state = reservation(segment, id)
  if not state then
    remembered(segment, time)
    return {'unknown'}
  end
  local amount = held(segment, id)
  if not amount then return state end
  set(segment, 'held', subtract(segment.held, amount))
  return end_reservation(segment, id, 'C')
end
