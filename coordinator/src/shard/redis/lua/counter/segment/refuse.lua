-- Records that the whole account had too little, so that every repeat gets that answer.
function rules.refuse(segment, id, time, generation, content, version, caller)
  local entry = recorded(segment, id)
  if entry then return first_answer(entry, content) end
  certain(segment)
  newest_known(segment, generation)
  timely(segment, time)
  not_frozen(segment, caller)
  make_room(segment, 1)
  remembered(segment, time)

  expire_due(segment)
  if segment.version ~= version then return {'changed'} end
  record(segment, id, time, content .. 'I')
  return 'I'
end
