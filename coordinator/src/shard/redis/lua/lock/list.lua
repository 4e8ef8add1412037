#!lua flags=no-writes
--[[
list: a page of the held locks.

KEYS[1]  state   hash: arm, grace
ARGV[1]  replid  of the life that KEYS[1] is named by
ARGV[2]  cursor  0, or the cursor that the page before returned
ARGV[3]  pattern of the records' names
ARGV[4]  count   about how many keys of the server to scan

Returns {-1} unarmed; or {1, cursor | "0" behind the last page, locks...}: name, record, remaining_ms,
  tickets: four per held lock; tickets that have ended are counted

The records' names come from the server: none is among KEYS.
]]
if not same_life(ARGV[1]) then return {-1} end
local is_live = live_records(KEYS[1])
if not is_live then return {-1} end
local page = redis.call('SCAN', ARGV[2], 'MATCH', ARGV[3], 'COUNT', ARGV[4])
local answer = {1, page[1]}
for _, name in ipairs(page[2]) do
  local record = redis.pcall('GET', name)
  if is_live(record) then
    local queue, at = line.queue_of({}, name), #answer
    answer[at + 1], answer[at + 2], answer[at + 3] = name, record, redis.call('PTTL', name)
    answer[at + 4] = queue and queue.count or 0
  end
end
return answer
