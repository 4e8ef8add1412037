-- What a batch goes by: whether this life is quiet at the sender's map; its token epoch and arm epoch;
-- when its timers end. Nothing where it is not armed. The mark of its quiet spares the look at its state.
local function armed(mark, map, state)
  local its_map, te, arm = string.match(mark or '', '^(%d+)|(%d+)|(%d+)$')
  if its_map == map then return true, te, arm, 0, 0 end
  local found = redis.call('HMGET', state, 'te', 'arm', 'grace', 'shut')
  if found[2] then return false, found[1], found[2], tonumber(found[3]), tonumber(found[4]) end
end
