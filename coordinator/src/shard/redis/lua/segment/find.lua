-- What became of a request.
function rules.find(segment, id, time, generation)
  certain(segment)
  known(segment, generation, time)
  local entry = get(part(segment, 'ids'), id)
  if entry then return state_of(entry) end
  remembered(segment, time)
  return {'unknown'}
end
