-- A segment makes ready for a layout that is planned.
function rules.prepare(segment, generation, base, from, closed)
  certain(segment)
  if generation == segment.generation then return {'prepared'} end
  if generation < segment.generation then return {'stale'} end
  local after = math.max(segment.newest, segment.mark)
  if after >= from then return {'later', after, now} end
  set(segment, 'generation', generation)
  set(segment, 'base', base)
  set(segment, 'cut', from)
  if closed then set(segment, 'closed', true) end
  return {'prepared'}
end

rules.create = rules.prepare
