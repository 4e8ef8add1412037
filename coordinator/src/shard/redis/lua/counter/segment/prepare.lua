-- Prepares a segment for a planned layout.

-- Uses that layout from now on.
local function go_by(segment, generation, base, from, closed, mark, copy)
  set(segment, 'generation', generation)
  set(segment, 'base', base)
  set(segment, 'cut', from)
  if closed then set(segment, 'closed', true) end
  if mark > segment.mark then set(segment, 'mark', mark) end
  segment.copy = copy
  for field, piece in pairs(manifest.pieces('manifest', copy)) do set(segment, field, piece) end
end

function rules.prepare(segment, generation, base, from, closed, mark, copy)
  certain(segment)
  if generation == segment.generation then return {'prepared'} end
  if generation < segment.generation then return {'stale'} end
  local after = math.max(segment.newest, segment.mark)
  if after >= from then return {'later', after, now} end
  go_by(segment, generation, base, from, closed, mark, copy)
  return {'prepared'}
end

rules.create = rules.prepare

-- The copy of the account's manifest. A doubtful segment returns it too: that helps to find a lost manifest.
function rules.read_copy(segment)
  return {'copied', segment.copy or manifest.text(segment.name .. ':seg', 'manifest'), segment.closed and 1 or 0}
end
