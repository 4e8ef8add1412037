-- The answers to acquires by a view from before the last declaration.
local function outdated(te, ctr, count)
  local last = tonumber(redis.call('GET', ctr))
  local answers = {looked_at_ms, 0, tonumber(te), last, last}
  for i = 1, count do answers[5 + i] = 11 end
  return answers
end

-- The state that a batch needs: whether this life is quiet at the sender's map; its token epoch and arm epoch; the end
-- of its grace; the map version at which a namespace was last declared. Nothing if it is not armed. If it is marked
-- quiet, the state is not read: no namespace was declared since the sender's map.
local function armed(mark, map, state)
  local its_map, te, arm = string.match(mark or '', '^(%d+)|(%d+)|(%d+)$')
  if its_map == map then return true, te, arm, 0, 0 end
  local found = redis.call('HMGET', state, 'te', 'arm', 'grace', 'declared')
  if found[2] then
    return false, found[1], found[2], tonumber(found[3]), tonumber(found[4])
  end
end
