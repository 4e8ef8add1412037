-- The answers to acquires by a view from before the last declaration.
local function outdated(te, ctr, count)
  local last = tonumber(redis.call('GET', ctr))
  local answers = {looked_at_ms, 0, tonumber(te), last, last}
  for i = 1, count do answers[5 + i] = 11 end
  return answers
end

-- How many milliseconds are left until a time; no more than `length`: if it is farther away than it was when it was set,
-- the server's clock was set back since.
local function time_left(ends, length)
  return math.max(0, math.min(ends - time_ms(), length))
end

-- The end of grace, which was set for `length` milliseconds; no later than so long from now on.
local function end_of_grace(state, ends, length)
  local latest = time_ms() + length
  if tonumber(ends) <= latest then return tonumber(ends) end
  redis.call('HSET', state, 'grace', latest)
  return latest
end

-- The end of grace for a slot of that epoch; 0 if it does not concern the slot.
local function grace_of(grace, from, epoch)
  return epoch < from and 0 or grace
end

-- Whether records of earlier armings count: in grace after an arming, and not in one of slots opened by force.
local function earlier_count(grace, from)
  return from == 0 and time_ms() < grace
end

-- The state that a batch needs: whether this life is quiet at the sender's map; its token epoch and arm epoch; the end
-- of its grace; the map version at which a namespace was last declared; the epoch from which grace concerns slots. Nothing
-- if it is not armed. If it is marked quiet, the state is not read: no namespace was declared since the sender's map.
local function armed(mark, map, state)
  local its_map, te, arm = string.match(mark or '', '^(%d+)|(%d+)|(%d+)$')
  if its_map == map then return true, te, arm, 0, 0, 0 end
  local found = redis.call('HMGET', state, 'te', 'arm', 'grace', 'declared', 'grace_ms', 'grace_from')
  if found[2] then
    return false, found[1], found[2], end_of_grace(state, found[3], found[5]), tonumber(found[4]), tonumber(found[6])
  end
end
