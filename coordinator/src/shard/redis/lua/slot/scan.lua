#!lua flags=allow-oom
--[[
scan: a page of the held keys of sealed slots.

KEYS[1]  state   hash: arm, grace, grace_ms
KEYS[2]  slots   5 bytes per slot
ARGV[1]  replid  of the life that KEYS[1..2] are named by
ARGV[2]  epoch   of the move
ARGV[3]  cursor  0, or the cursor that the page before returned
ARGV[4]  prefix  of all names, with its colon
ARGV[5]  pattern of the names of records
ARGV[6]  count   about how many keys of the server to scan

Returns {-1} unarmed; or {1, grace_left_ms, cursor | "0" behind the last page, texts...}: of the keys

No keys in grace. Every name comes from the server: none is among KEYS.
]]
if not same_life(ARGV[1]) then return {-1} end
local is_live, shard, grace_left = live_records(KEYS[1], true)
if not is_live then return {-1} end
if grace_left > 0 then return {1, grace_left, '0'} end
local page = redis.call('SCAN', ARGV[3], 'MATCH', ARGV[5], 'COUNT', ARGV[6])
local answer = {1, 0, page[1]}
local start, slots = #ARGV[4] + 1, redis.call('GET', KEYS[2]) or ''
local sealed = struct.pack('>c1I4', 'S', tonumber(ARGV[2]))

-- A foreign name may have no slot.
local function is_sealed(slot)
  return #slot <= 6 and string.sub(slots, slot * 5 + 1, slot * 5 + 5) == sealed
end

local texts, names = {}, {}
for _, name in ipairs(page[2]) do
  local slot = string.match(name, '^{(%d+)}:', start)
  if slot and is_sealed(slot) then
    texts[#texts + 1], names[#names + 1] = string.sub(name, start), name
  end
end
if not names[1] then return answer end
for i, record in ipairs(redis.call('MGET', unpack(names))) do
  if is_live(record) or (not record and shares.read(shard, names[i])) then answer[#answer + 1] = texts[i] end
end
return answer
