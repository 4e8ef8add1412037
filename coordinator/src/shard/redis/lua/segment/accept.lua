-- A person looks at a segment, doubtful or not, and takes it for what it is.
function rules.accept(segment)
  must_be_safe(segment.durability)
  if segment.doubtful then
    set(segment, 'doubtful', false)
    set(segment, 'losses', segment.losses + 1)
  end
  return {'looked', look(segment)}
end

function rules.inspect(segment)
  return {'looked', look(segment)}
end
