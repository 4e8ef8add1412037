-- The server's clock in milliseconds, once a call has read it; 0 until then.
local looked_at_ms

-- Sections of INFO as one text: before Redis 7, a call takes one.
local function info_of(...)
  local texts = {}
  for i, section in ipairs({...}) do texts[i] = redis.call('INFO', section) end
  return table.concat(texts)
end

-- Whether the server is still the primary of the life in the keys' names: a connection can outlive a demotion and
-- promotion. Every call begins with it.
local function same_life(replid)
  looked_at_ms = 0
  local info = redis.call('INFO', 'replication')
  return string.find(info, 'role:master', 1, true)
    and string.find(info, 'master_replid:' .. replid, 1, true)
end

local function time_ms()
  if looked_at_ms == 0 then
    local time = redis.call('TIME')
    looked_at_ms = time[1] * 1000 + math.floor(time[2] / 1000)
  end
  return looked_at_ms
end
