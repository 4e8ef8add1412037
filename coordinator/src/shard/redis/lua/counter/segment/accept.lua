-- A person looks at a segment, doubtful or not, and takes it for what it is.
function rules.accept(segment, generation, base, from, closed, mark, head)
  must_be_safe(segment.durability)
  local is_older = segment.generation < generation
  local latest = now + segment.skew
  if (segment.doubtful or is_older) and latest > segment.mark then set(segment, 'mark', latest) end
  if segment.doubtful then
    set(segment, 'doubtful', false)
    set(segment, 'losses', segment.losses + 1)
  end
  if is_older then go_by(segment, generation, base, from, closed, mark, head) end
  return {'looked', look(segment)}
end

function rules.inspect(segment)
  return {'looked', look(segment)}
end

-- A segment that exists is left as it is.
rules.replace = rules.inspect
