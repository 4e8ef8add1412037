-- Lets a credit be forgotten in time, after its transfer is finished.
function rules.forget(segment, id, time, generation, member)
  certain(segment)
  known(segment, generation, time)
  if segment.open > 0 and get(part(segment, 'open'), id) then
    meet_final(segment)
    put(meet(part(segment, 'pinned')), member, false)
    close_open(segment, id, 'F')
  end
  return {'done'}
end
