-- Looks up a request.
function rules.find(segment, id, time, generation)
  local entry = recorded(segment, id)
  if entry then return state_of(entry) end
  certain(segment)
  known(segment, generation, time)
  remembered(segment, time)
  return {'unknown'}
end
