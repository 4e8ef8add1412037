-- Old answers are forgotten; nothing that may be needed is.
local PURGED_PER_CALL_MAX = 1000

-- Drops up to `most` entries whose state is none of those of `kept`, not younger than the mark, the oldest first;
-- how many.
local function drop_final(segment, answers, order, kept, most)
  local entries, sorted = part(segment, answers), part(segment, order)
  local dropped, skipped = 0, 0
  while dropped < most do
    local ids = read('ZRANGEBYSCORE', whole(sorted), '-inf', segment.mark, 'LIMIT', skipped, PURGED_PER_CALL_MAX)
    if not ids[1] then break end
    local found = read('HMGET', whole(entries), unpack(ids))
    for i, id in ipairs(ids) do
      if dropped == most then break end
      if string.find(found[i] or '', kept, 17) then
        skipped = skipped + 1
      else
        put(entries, id, false)
        put(sorted, id, false)
        dropped = dropped + 1
      end
    end
  end
  return dropped
end

function rules.purge(segment)
  certain(segment)
  local old = now - segment.window
  if old > segment.mark then set(segment, 'mark', old) end
  local dropped = drop_final(segment, 'ids', 'order', '^[HS]', PURGED_PER_CALL_MAX)
  dropped = dropped + drop_final(segment, 'credits', 'credit_order', '^P', PURGED_PER_CALL_MAX - dropped)
  if segment.count then segment.count = segment.count - dropped end
  return {'purged', dropped}
end
