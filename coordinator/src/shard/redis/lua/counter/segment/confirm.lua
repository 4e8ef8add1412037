-- Spends a reservation, or a part of it.

-- The state of a reservation; false if it is not recorded. An id that was used for a request of another kind is a
-- conflict.
local function reservation(segment, id)
  local entry = entry_of(segment, id)
  local state = entry and state_of(entry)
  if state and string.find(state, '^[DSVRK]') and not legs.is_capture(state) then refuse('conflict') end
  return state
end

-- The end of a reservation; nothing if its end is not recorded.
local function ended(segment, id)
  local state = reservation(segment, id)
  return state and not string.find(state, '^[HK]') and state
end

-- Gives back what a reservation has above the amount that is taken of it.
function legs.give_rest_back(segment, member, taken, amount, caller)
  if less(amount, taken) then refuse('above_reserved', taken, amount) end
  local rest = subtract(amount, taken)
  if not less(0, rest) then return end
  not_frozen(segment, caller)
  take_back(segment, rest)
  log.effect(segment, 'X', rest, log.id_text_of(member))
end

-- `spent`: the amount, or false for all of it.
function rules.confirm(segment, id, time, generation, spent, caller, member)
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
  spent = spent or amount
  legs.give_rest_back(segment, member, spent, amount, caller)
  set(segment, 'held', subtract(segment.held, spent))
  return end_reservation(segment, member, spent, 'C')
end
