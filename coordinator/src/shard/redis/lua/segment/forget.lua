-- A credit whose source is settled may be forgotten in time.
function rules.forget(segment, id, time, generation)
  certain(segment)
  known(segment, generation, time)
  local credits = part(segment, 'credits')
  local entry = get(credits, id)
  if entry and state_of(entry) == 'P' then
    put(meet(part(segment, 'pinned')), id, false)
    put(credits, id, string.sub(entry, 1, 16) .. 'F')
  end
  return {'done'}
end
