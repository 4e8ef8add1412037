-- An operator reads a segment, doubtful or not, and accepts it as it is. `others`: segment, its version, ...
function rules.accept(segment, generation, base, from, closed, mark, copy, at, version, others)
  must_be_safe(segment.durability)
  if segment.doubtful and segment.version ~= version then return {'stale'} end
  local is_older = segment.generation < generation
  if segment.doubtful or is_older then
    clocks.agree(at, segment.skew)
    if segment.awaits_versions then
      local inn = meet(part(segment, 'inn'))
      for i = 1, #others, 2 do put(inn, others[i], others[i + 1]) end
      set(segment, 'awaits_versions', false)
    end
    set(segment, 'mark', math.max(segment.mark, now + segment.skew))
  end
  if segment.doubtful then
    set(segment, 'doubtful', false)
    set(segment, 'losses', segment.losses + 1)
  end
  if is_older then go_by(segment, generation, base, from, closed, mark, copy) end
  return {'view', view(segment)}
end

function rules.inspect(segment)
  return {'view', view(segment)}
end

-- A segment that exists stays as it is.
rules.replace = rules.inspect
