-- Does a command, unless a greater fencing token has been here: docs/fencing.md.
--
--   EVAL "$(cat redis.lua)" 2 account:42:fence account:42  $RINGFENCE_TOKEN  HSET account:42 balance 70
--
-- KEYS[1]   the fence: the greatest token seen, and nothing else; never deleted, never expiring
-- KEYS[2…]  what the command touches
-- ARGV[1]   the writer's token, in decimal
-- ARGV[2…]  the command
-- Returns what the command returns; the error FENCED if a greater token has been here.

-- Padded to 19 digits, and compared as text: Lua's numbers are doubles, exact only to 2^53.
local token = ARGV[1] or ''
token = string.rep('0', 19 - #token) .. token
if token:find('%D') or token == string.rep('0', 19) or token > '9223372036854775807' or #token > 19 then
  return redis.error_reply('ERR ARGV[1], the fencing token, must be a number from 1 to 2^63 - 1, in decimal')
end
local greatest = redis.call('GET', KEYS[1]) or ''
if token < greatest then
  return redis.error_reply('FENCED ' .. KEYS[1] .. ' has seen ' .. greatest .. ', a greater token than ' .. token)
end
-- First: if a write below fails, what came before it stays.
redis.call('SET', KEYS[1], token)

-- Several writes, or writes that depend on the present value? Put your own here, in place of this line.
return redis.call(unpack(ARGV, 2))
