-- Receives another account's transfer, or promises to. States: Q promised, with the amount; P pinned, F forgettable, N
-- refused. `member`: its member in `pinned`; that of a promise has an end.
legs.PROMISE = '\255\255'

function legs.answer(entry, content)
  if string.sub(entry, 1, 8) ~= content then refuse('conflict') end
  local letter = string.sub(entry, 9, 9)
  if letter == 'Q' then return {'promised'} end
  return {'credited', letter == 'N' and 0 or 1}
end

-- The amount of a promise; nothing if the entry is none.
function legs.promised_in(entry)
  local amount = entry and string.match(entry, '^Q(%d+)$', 9)
  return amount and amount_of(amount)
end

function legs.give(segment, amount, member)
  set_value(segment, add(segment.value, amount))
  log.effect(segment, '<', amount, member)
end

-- There is room for the money of a promise, also in an account that is closed since.
function legs.keep_promise(segment, id, content, amount, caller, member, is_promise)
  certain(segment)
  if is_promise then return {'promised'} end
  not_frozen(segment, caller)
  local pinned = meet(part(segment, 'pinned'))
  log.meet(segment)
  put(pinned, member .. legs.PROMISE, false)
  put(pinned, member, '0')
  set(segment, 'promised', subtract(segment.promised, amount))
  legs.give(segment, amount, member)
  put(part(segment, 'open'), id, content .. 'P')
  return {'credited', 1}
end

function rules.credit(segment, id, time, generation, content, amount, caller, member, unit, is_promise)
  local entry = recorded(segment, id)
  local promised = legs.promised_in(entry)
  if promised and string.sub(entry, 1, 8) == content then
    return legs.keep_promise(segment, id, content, promised, caller, member, is_promise)
  end
  if entry then return legs.answer(entry, content) end
  certain(segment)
  known(segment, generation, time)
  if time <= segment.mark then
    -- In a segment that replaces a lost one, it may have been credited there, and be lost with that. Otherwise it is
    -- not recorded, and the mark never falls: every repeat is refused too.
    local lost = segment.lost or tonumber(read('HGET', segment.name .. ':seg', 'lost') or 0)
    return {'credited', time <= lost and 1 or 0}
  end
  timely(segment, time)
  not_frozen(segment, caller)
  make_room(segment, 1)
  if time <= segment.mark then return {'credited', 0} end

  local _, _, own_unit = limits_of(segment)
  local state = 'N'
  if not segment.closed and own_unit == unit and fits(segment, amount) then
    meet(part(segment, 'open'))
    local pinned = meet(part(segment, 'pinned'))
    if is_promise then
      state = 'Q' .. decimal(amount)
      put(pinned, member .. legs.PROMISE, '0')
      set(segment, 'promised', add(segment.promised, amount))
    else
      state = 'P'
      put(pinned, member, '0')
      legs.give(segment, amount, member)
    end
  end
  record(segment, id, time, content .. state, state ~= 'N')
  return legs.answer(content .. state, content)
end
