-- An operator reads a segment, doubtful or not, and accepts it as it is.
function rules.accept(segment, generation, base, from, closed, mark, manifest, at)
  must_be_safe(segment.durability)
  local is_older = segment.generation < generation
  if segment.doubtful or is_older then
    clocks_agree(at, segment.skew)
    set(segment, 'mark', math.max(segment.mark, now + segment.skew))
  end
  if segment.doubtful then
    set(segment, 'doubtful', false)
    set(segment, 'losses', segment.losses + 1)
  end
  if is_older then go_by(segment, generation, base, from, closed, mark, manifest) end
  return {'view', view(segment)}
end

function rules.inspect(segment)
  return {'view', view(segment)}
end

-- A segment that exists stays as it is.
rules.replace = rules.inspect
