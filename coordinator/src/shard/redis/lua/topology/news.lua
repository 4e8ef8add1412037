-- Tells watchers of a record that was put in force. It may fail: a watcher that hears nothing reads
-- it later.
local function tell(channel, record)
  local n, version = header(record)
  redis.pcall('PUBLISH', channel, n .. ' ' .. version)
end
