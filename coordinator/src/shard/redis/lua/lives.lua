-- Unlinks what former lives left on this server, so that restarts leave nothing behind.
local function bury_former(lives, family, present)
  for _, life in ipairs(redis.call('SMEMBERS', lives)) do
    if life ~= present then
      for _, part in ipairs({'state', 'ctr', 'slots', 'open', 'quiet', 'fence', 'copy', 'queues'}) do
        redis.call('UNLINK', family .. life .. ':' .. part)
      end
      redis.call('SREM', lives, life)
    end
  end
end
