#!lua flags=no-writes
--[[
rights: which of the commands that scripts run the user may not run.

ARGV[1]  replid  of the life
ARGV[2]  key     that every command is checked on
ARGV[3].. channels that messages are sent and heard on

Returns {-1} another life; or {1, refused...}: a command, and the key or channel, for each

A script that is refused a command in its middle has written what came before.
]]
if not same_life(ARGV[1]) then return {-1} end
local commands = 'DECRBY DEL EXISTS GET GETRANGE HDEL HEXISTS HGET HGETALL HINCRBY HKEYS HLEN HMGET HSCAN HSET HSTRLEN INCRBY '
  .. 'INFO LINDEX LLEN LPOP LPUSH LRANGE LSET LTRIM MGET MSET PERSIST PEXPIRE PEXPIREAT PTTL RENAME RPUSH RPUSHX SADD SCAN '
  .. 'SET SETBIT SETRANGE SISMEMBER SMEMBERS SMISMEMBER SREM TIME UNLINK ZADD ZCARD ZRANDMEMBER ZRANGE ZRANGEBYLEX '
  .. 'ZRANGEBYSCORE ZRANK ZREM ZREVRANGEBYSCORE ZSCAN ZSCORE'
local answer, key = {1}, ARGV[2]
-- Before Redis 7, nothing tells.
if not redis.acl_check_cmd then return answer end
for command in string.gmatch(commands, '%u+') do
  if not redis.acl_check_cmd(command, key, key) then answer[#answer + 1] = command .. ' on ' .. key end
end
for i = 3, #ARGV do
  if not redis.acl_check_cmd('PUBLISH', ARGV[i], '') then answer[#answer + 1] = 'PUBLISH on ' .. ARGV[i] end
  if not redis.acl_check_cmd('SUBSCRIBE', ARGV[i]) then answer[#answer + 1] = 'SUBSCRIBE on ' .. ARGV[i] end
end
return answer
