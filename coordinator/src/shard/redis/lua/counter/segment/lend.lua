-- Lends money to another segment.
function rules.lend(segment, to, seq, want, caller)
  certain(segment)
  local out = part(segment, 'out')
  local last, last_amount = string.match(get(out, to) or '0:0', '^(%d+):(%d+)$')
  last = tonumber(last)
  if seq == last then return {'lent', last, amount_of(last_amount)} end
  local believed = seq > last and segment.losses > 0
  if seq ~= last + 1 and not believed then return {'stale'} end
  not_frozen(segment, caller)
  local amount = less(segment.value, want) and segment.value or want
  if amount == 0 then return {'nothing'} end
  put(out, to, string.format('%d:%s', seq, decimal(amount)))
  set_value(segment, subtract(segment.value, amount))
  return {'lent', seq, amount}
end
