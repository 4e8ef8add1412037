#!lua
--[[
write: write a balance and its line of the journal, unless the account has seen a greater token.

KEYS[1]  balances  hash, account -> coins
KEYS[2]  tokens    hash, account -> greatest token seen, 19 digits
KEYS[3]  journal   list of "account worker number token before after", in the order accepted
ARGV[1]  account   integer
ARGV[2]  op        "worker number"
ARGV[3]  token     19 digits, zeros first, so that texts compare as numbers do; or "-": not checked
ARGV[4]  before    coins read
ARGV[5]  after     coins to write

Returns  1  accepted
         0  refused: the account has seen a greater token; nothing written
        -1  there is no such account; nothing written

`before` is written down and not compared: that nobody wrote since is for the lock to ensure.
Cost: 4 commands, O(1).
]]
local seen = redis.call('HGET', KEYS[2], ARGV[1])
if not seen then return -1 end
if ARGV[3] ~= '-' then
  if ARGV[3] < seen then return 0 end
  redis.call('HSET', KEYS[2], ARGV[1], ARGV[3])
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[5])
redis.call('RPUSH', KEYS[3], table.concat({ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]}, ' '))
return 1
