-- Receives another account's transfer. States: P pinned, F forgettable, N refused. `member`: its member in `pinned`.

local function credit_answer(entry, content)
  if string.sub(entry, 1, 8) ~= content then refuse('conflict') end
  return {'credited', string.sub(entry, 9) == 'N' and 0 or 1}
end

function rules.credit(segment, id, time, generation, content, amount, caller, member, unit)
  local entry = recorded(segment, id)
  if entry then return credit_answer(entry, content) end
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
  local is_pinned = not segment.closed and own_unit == unit and fits(segment, amount)
  local state = is_pinned and 'P' or 'N'
  if is_pinned then
    meet(part(segment, 'open'))
    put(meet(part(segment, 'pinned')), member, '0')
    set_value(segment, add(segment.value, amount))
    log.effect(segment, '<', amount, member)
  end
  record(segment, id, time, content .. state, is_pinned)
  return credit_answer(content .. state, content)
end
