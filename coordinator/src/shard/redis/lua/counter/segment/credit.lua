-- Receives another account's transfer, or promises to. States: Q promised, with the amount, ':', and the time; P pinned,
-- F forgettable, N refused. `member`: its text, which with its key is its member in `pinned`.

function legs.answer(entry, content)
  if string.sub(entry, 1, 8) ~= content then refuse('conflict') end
  local letter = string.sub(entry, 9, 9)
  if letter == 'Q' then return {'promised'} end
  return {'credited', letter == 'N' and 0 or 1}
end

-- The amount of a promise, and its time as a text; nothing if the entry is none.
function legs.promised_in(entry)
  local amount, at = string.match(entry or '', '^Q(%d+):(%d+)$', 9)
  if amount then return amount_of(amount), at end
end

function legs.give(segment, amount, member)
  set_value(segment, add(segment.value, amount))
  log.effect(segment, '<', amount, member)
end

-- There is room for the money of a promise, also in an account that is closed since. A repeat is a promise of now.
function legs.keep_promise(segment, id, content, promise, caller, member, is_promise)
  local amount, at = unpack(promise)
  certain(segment)
  if is_promise then
    local present = string.format('%d', now)
    if at ~= present then put(part(segment, 'open'), id, content .. 'Q' .. decimal(amount) .. ':' .. present) end
    return {'promised'}
  end
  not_frozen(segment, caller)
  log.meet(segment)
  set(segment, 'promised', subtract(segment.promised, amount))
  legs.give(segment, amount, member)
  put(part(segment, 'open'), id, content .. 'P')
  return {'credited', 1}
end

function rules.credit(segment, id, time, generation, content, amount, caller, member, unit, is_promise)
  local entry = recorded(segment, id)
  local promised, at = legs.promised_in(entry)
  if promised and string.sub(entry, 1, 8) == content then
    return legs.keep_promise(segment, id, content, {promised, at}, caller, member, is_promise)
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
    put(meet(part(segment, 'pinned')), member .. id, '0')
    if is_promise then
      at = string.format('%d', now)
      state = 'Q' .. decimal(amount) .. ':' .. at
      set(segment, 'promised', add(segment.promised, amount))
    else
      state = 'P'
      legs.give(segment, amount, member)
    end
  end
  record(segment, id, time, content .. state, state ~= 'N')
  return legs.answer(content .. state, content)
end
