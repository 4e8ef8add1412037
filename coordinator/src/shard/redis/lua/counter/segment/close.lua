-- Closes a segment to new money.
function rules.close(segment)
  must_be_safe(segment.durability)
  set(segment, 'closed', true)
  return {'done'}
end
