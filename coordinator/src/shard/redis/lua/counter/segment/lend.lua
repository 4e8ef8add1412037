-- Lends money to another segment, if the last loan to it is `landed` or an earlier one. The number is the version.
function rules.lend(segment, to, landed, want, caller)
  certain(segment)
  local out = part(segment, 'out')
  local last, last_amount = string.match(get(out, to) or '0:0', '^(%d+):(%d+)$')
  last = tonumber(last)
  if landed < last then return {'lent', last, amount_of(last_amount)} end
  not_frozen(segment, caller)
  local amount = less(segment.value, want) and segment.value or want
  if amount == 0 then return {'nothing'} end
  log.meet(segment)
  set_value(segment, subtract(segment.value, amount))
  put(out, to, string.format('%d:%s', segment.version, decimal(amount)))
  log.effect(segment, 'O', amount, string.format('%d:%d', to, segment.version))
  return {'lent', segment.version, amount}
end
