-- Old answers are forgotten; nothing that may be needed is.
local PURGED_PER_CALL_MAX = 256

-- Which of the first that came are no younger than the mark, `most` at most.
local function old_ones(segment, list, most)
  local ids, old = read('LRANGE', whole(list), 0, most - 1), 0
  while ids[old + 1] and tonumber(string.sub(ids[old + 1], 1, 16)) <= segment.mark do old = old + 1 end
  return {unpack(ids, 1, old)}
end

-- Those of `ids` that are final: their state is none of `kept`. The others go to the end of the list.
local function final_ones(entries, list, ids, kept)
  local final = {}
  for i, entry in ipairs(read('HMGET', entries.name, unpack(ids))) do
    if string.find(entry or '', kept, 17) then
      push(list, ids[i])
    else
      final[#final + 1] = ids[i]
    end
  end
  return final
end

-- Drops those that are old and final; how many. `kept`: the states of what is not, if anything may be in one.
local function drop_old(segment, answers, order, most, kept)
  local entries, list = part(segment, answers), part(segment, order)
  local old = most > 0 and old_ones(segment, list, most) or {}
  if #old == 0 then return 0 end
  whole(meet(entries))
  local final = kept and final_ones(entries, list, old, kept) or old
  redis.call('LTRIM', list.name, #old, -1)
  send('HDEL', entries.name, final)
  entries.known = {}
  return #final
end

function rules.purge(segment)
  certain(segment)
  local old = now - segment.window
  if old > segment.mark then set(segment, 'mark', old) end
  local unfinished = segment.held ~= 0 and '^[HS]'
  local dropped = drop_old(segment, 'ids', 'order', PURGED_PER_CALL_MAX, unfinished)
  dropped = dropped + drop_old(segment, 'credits', 'credit_order', PURGED_PER_CALL_MAX - dropped, '^P')
  if segment.count then segment.count = segment.count - dropped end
  return {'purged', dropped}
end
