-- Gives reservations back at their deadlines, by the server's clock.
local EXPIRED_PER_CALL_MAX = 16

-- The amount and the deadline of a reservation, if it is held.
local function held(segment, id)
  local entry = segment.open > 0 and get(part(segment, 'open'), id)
  local amount, deadline = string.match(entry or '', '^H(%d+):(%d+)$', 9)
  if not amount then return nil end
  meet(part(segment, 'due'))
  meet_final(segment)
  return amount_of(amount), tonumber(deadline)
end

-- Moves held money, once.
local function end_reservation(segment, id, state)
  put(part(segment, 'due'), id, false)
  close_open(segment, id, state)
  return state
end

local function return_reservation(segment, id, amount, state)
  take_back(segment, amount)
  return end_reservation(segment, id, state)
end

local function expire_if_due(segment, id)
  local amount, deadline = held(segment, id)
  if amount and deadline <= now then return_reservation(segment, id, amount, 'E') end
end

-- Gives back reservations past their deadline, the oldest first. Returns their number. Sets `none_due` if no more are
-- due.
local function expire_due(segment)
  if segment.none_due or segment.held == 0 then return 0 end
  local due = read('ZRANGEBYSCORE', whole(part(segment, 'due')), '-inf', now, 'LIMIT', 0, EXPIRED_PER_CALL_MAX)
  for _, id in ipairs(due) do expire_if_due(segment, id) end
  segment.none_due = #due < EXPIRED_PER_CALL_MAX
  return #due
end

function rules.expire(segment)
  certain(segment)
  return {'expired', expire_due(segment)}
end
