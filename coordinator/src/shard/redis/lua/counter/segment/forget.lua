-- Lets a credit be forgotten in time, after its transfer is finished; or refuses the money of a promise from now on.
function rules.forget(segment, id, time, generation, member)
  certain(segment)
  known(segment, generation, time)
  local entry = segment.open > 0 and get(part(segment, 'open'), id)
  if entry then
    meet_final(segment)
    local promised = legs.promised_in(entry)
    if promised then set(segment, 'promised', subtract(segment.promised, promised)) end
    put(meet(part(segment, 'pinned')), member .. id, false)
    close_open(segment, id, promised and 'N' or 'F')
  end
  return {'done'}
end
