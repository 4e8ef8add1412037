-- Tells whoever watches of a record that was put in force. It may fail: what is not heard is seen.
local function tell(channel, record)
  local n, version = header(record)
  redis.pcall('PUBLISH', channel, n .. ' ' .. version)
end
