-- Gives reservations back at their deadlines, by the server's clock.
-- The amount and the deadline of a reservation, if it is held.
local function held(segment, id)
  local entry = segment.open > 0 and get(part(segment, 'open'), id)
  local amount, deadline = string.match(entry or '', '^H(%d+):(%d+)$', 9)
  if not amount then return nil end
  meet(part(segment, 'due'))
  meet_final(segment)
  return amount_of(amount), tonumber(deadline)
end

-- Moves held money, once. `member`: of `due`, the id as a text and its key. The state's letter is that of the effect.
local function end_reservation(segment, member, amount, state)
  put(part(segment, 'due'), member, false)
  close_open(segment, log.key_of(member), state)
  log.effect(segment, state, amount, log.id_text_of(member))
  return state
end

local function return_reservation(segment, member, amount, state)
  take_back(segment, amount)
  return end_reservation(segment, member, amount, state)
end

-- `member`: that of the reservation, if it is known.
local function expire_if_due(segment, id, member)
  local amount, deadline = held(segment, id)
  if not amount or deadline > now then return end
  if not member then
    local at = string.format('%d', deadline)
    for _, due in ipairs(read('ZRANGEBYSCORE', whole(part(segment, 'due')), at, at)) do
      if log.key_of(due) == id then member = due end
    end
  end
  return_reservation(segment, member, amount, 'E')
end

-- Gives back reservations past their deadline, the oldest first. Returns their number. Sets `none_due` if no more are
-- due.
local function expire_due(segment)
  local EXPIRED_PER_CALL_MAX = 16
  if segment.none_due or segment.held == 0 then return 0 end
  local due = read('ZRANGEBYSCORE', whole(part(segment, 'due')), '-inf', now, 'LIMIT', 0, EXPIRED_PER_CALL_MAX)
  for _, member in ipairs(due) do expire_if_due(segment, log.key_of(member), member) end
  segment.none_due = #due < EXPIRED_PER_CALL_MAX
  return #due
end

function rules.expire(segment)
  certain(segment)
  return {'expired', expire_due(segment)}
end
