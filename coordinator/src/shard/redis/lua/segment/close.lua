-- An account that is to have no more money.
function rules.close(segment)
  set(segment, 'closed', true)
  return {'done'}
end
