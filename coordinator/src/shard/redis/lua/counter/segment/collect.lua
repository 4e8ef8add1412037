-- Reads the segment's money, with or without a freeze.
local FREEZE_MS_MAX = 1000

function rules.collect(segment, generation, caller, for_ms)
  certain(segment)
  newest_known(segment, generation)
  if caller then
    not_frozen(segment, caller)
    set(segment, 'frozen', string.format('%d %s', now + math.min(for_ms, FREEZE_MS_MAX), caller))
  end
  expire_due(segment)
  return {'view', view(segment)}
end

function rules.thaw(segment, caller)
  if string.match(segment.frozen, ' (.*)$') == caller then set(segment, 'frozen', '') end
  return {'done'}
end
