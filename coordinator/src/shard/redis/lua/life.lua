-- Whether the server is still the primary of the life that the keys are named by: a connection can
-- outlive a demotion and promotion.
local function same_life(replid)
  local info = redis.call('INFO', 'replication')
  return string.find(info, 'role:master', 1, true)
    and string.find(info, 'master_replid:' .. replid, 1, true)
end

-- The server's clock in milliseconds.
local function time_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
