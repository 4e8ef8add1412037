-- Spends a reservation.

-- The state of a reservation; false if it is not recorded. An id that was used for a request of another kind is a
-- conflict.
local function reservation(segment, id)
  local entry = entry_of(segment, id)
  local state = entry and state_of(entry)
  if state and string.find(state, '^[DSVR]') then refuse('conflict') end
  return state
end

-- The end of a reservation; nothing if its end is not recorded.
local function ended(segment, id)
  local state = reservation(segment, id)
  return state and string.sub(state, 1, 1) ~= 'H' and state
end

function rules.confirm(segment, id, time, generation, member)
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
  local amount = held(segment, id)
  if not amount then return state end
  set(segment, 'held', subtract(segment.held, amount))
  return end_reservation(segment, member, amount, 'C')
end
