#!lua flags=no-writes
--[[
read: what is stored of the whole shard, unless the caller has it.

KEYS     as in shared/whole.lua
ARGV[1]  replid  of the life that the keys are named by
ARGV[2]  slots   1: with the states of the slots
ARGV[3]  known   the stamp of what the caller has
ARGV[4]  uptime  1: with how long the server has been up

Returns {-1} another life · {now, te, ctr, uptime_ms or -1, stamp, texts...}; te and ctr are those of the last token;
there are no texts if the stamp is the known one: arm, te, grace, grace_ms, grace_from, forced, declared, quiet, fence,
copy, pointer, record, slots, nil for each that is not there
]]
if not same_life(ARGV[1]) then return {-1} end
local stamp = stamp_of_whole(KEYS)
local te, ctr = last_token(KEYS)
local answer = {time_ms(), te, ctr, ARGV[4] == '1' and uptime_ms() or -1, stamp}
if stamp ~= ARGV[3] then
  for i, text in ipairs(whole_shard(KEYS, ARGV[2] == '1')) do answer[5 + i] = text end
end
return answer
