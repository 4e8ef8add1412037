#!lua flags=allow-oom
--[[
release: give locks back.

KEYS[1]  ctr     the token counter, present where this life is armed
KEYS[2]..        records, one an operation: "nonce|..."
ARGV[1]  replid  of the life that KEYS[1] is named by
ARGV[2]..        nonces, one an operation

Returns {-1} unarmed, nothing written; or {now, answers...}: 1 deleted, 0 not (or no longer) there

Two commands for the whole batch. Nothing can fail once something is written.
]]
if not same_life(ARGV[1]) then return {-1} end
local count = #KEYS - 1
local found = redis.call('MGET', KEYS[1], unpack(KEYS, 2))
if not found[1] then return {-1} end
local answers, doomed, seen = {time_ms()}, {}, {}
for i = 1, count do
  local record, nonce, key = found[1 + i], ARGV[1 + i] .. '|', KEYS[1 + i]
  if record and string.sub(record, 1, #nonce) == nonce and not seen[key] then
    doomed[#doomed + 1], seen[key], answers[1 + i] = key, true, 1
  else
    answers[1 + i] = 0
  end
end
if doomed[1] then redis.call('DEL', unpack(doomed)) end
return answers
