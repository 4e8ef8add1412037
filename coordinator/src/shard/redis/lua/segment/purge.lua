-- Old answers are forgotten; nothing that may be needed is.
local PURGED_PER_CALL_MAX = 1000

-- Looks at the first that came, `most` at most, up to one that is younger than the mark: drops those whose state is
-- none of `kept`, and puts the others at the end; how many it dropped.
local function drop_final(segment, answers, order, kept, most)
  if most == 0 then return 0 end
  local entries, list = part(segment, answers), part(segment, order)
  local ids, old = read('LRANGE', whole(list), 0, most - 1), 0
  while ids[old + 1] and tonumber(string.sub(ids[old + 1], 1, 16)) <= segment.mark do old = old + 1 end
  if old == 0 then return 0 end
  local found, dropped = read('HMGET', whole(entries), unpack(ids, 1, old)), {}
  for i = 1, old do
    local id = ids[i]
    if string.find(found[i] or '', kept, 17) then
      push(list, id)
    else
      dropped[#dropped + 1], entries.known[id] = id, false
    end
  end
  redis.call('LTRIM', list.name, old, -1)
  send('HDEL', entries.name, dropped)
  return #dropped
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
