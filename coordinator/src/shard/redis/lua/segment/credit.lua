-- Another account's transfer arrives. An entry is "content state": P pinned, F forgettable, N refused.

local function credit_answer(entry, content)
  if string.sub(entry, 1, 16) ~= content then refuse('conflict') end
  return {'credited', string.sub(entry, 17) == 'N' and 0 or 1}
end

function rules.credit(segment, id, time, generation, content, amount, caller)
  local entry = get(part(segment, 'credits'), id)
  if entry then return credit_answer(entry, content) end
  certain(segment)
  known(segment, generation, time)
  -- Not recorded: the mark never falls, so it is refused for ever.
  if time <= segment.mark then return {'credited', 0} end
  timely(segment, time)
  not_frozen(segment, caller)
  has_room(segment)

  local state = 'N'
  if not segment.closed and fits(segment, amount) then
    put(meet(part(segment, 'pinned')), id, '0')
    set_value(segment, add(segment.value, amount))
    state = 'P'
  end
  remember(segment, 'credits', 'credit_order', id, time, content .. state)
  return credit_answer(content .. state, content)
end
