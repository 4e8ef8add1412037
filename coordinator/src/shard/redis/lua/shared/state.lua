-- The state that a batch needs: whether this life is quiet at the sender's map; its token epoch and arm epoch; the end
-- of its timers. Nothing if it is not armed. If it is marked quiet, the state is not read.
local function armed(mark, map, state)
  local its_map, te, arm = string.match(mark or '', '^(%d+)|(%d+)|(%d+)$')
  if its_map == map then return true, te, arm, 0, 0 end
  local found = redis.call('HMGET', state, 'te', 'arm', 'grace', 'shut')
  if found[2] then return false, found[1], found[2], tonumber(found[3]), tonumber(found[4]) end
end
