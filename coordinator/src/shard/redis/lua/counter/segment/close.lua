-- An account that is to have no more money.
function rules.close(segment)
  must_be_safe(segment.durability)
  set(segment, 'closed', true)
  return {'done'}
end
