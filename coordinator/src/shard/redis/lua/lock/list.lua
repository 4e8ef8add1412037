#!lua flags=no-writes
--[[
list: a page of the held locks.

KEYS[1]  state   hash: arm, grace, grace_ms, grace_from
ARGV[1]  replid  of the life that KEYS[1] is named by
ARGV[2]  cursor  0, or the cursor that the page before returned
ARGV[3]  pattern of the records' names
ARGV[4]  count   about how many keys of the server to scan

Returns {-1} unarmed; or {1, cursor | "0" behind the last page, now, locks...}: name, record, remaining_ms,
  callers that wait, kind, shares: six per held lock; tickets that have ended are counted; of a mutex kind and shares are
  empty, of another lock the record; shares are the nonce and the text of each holder

The records' names come from the server: none is among KEYS.
]]
if not same_life(ARGV[1]) then return {-1} end
local is_live, shard = live_records(KEYS[1])
if not is_live then return {-1} end
local page = redis.call('SCAN', ARGV[2], 'MATCH', ARGV[3], 'COUNT', ARGV[4])
local answer = {1, page[1], shard.now}
for _, name in ipairs(page[2]) do
  local record = redis.pcall('GET', name)
  local kind, holders
  if type(record) == 'table' then kind, holders = shares.read(shard, name) end
  if kind or is_live(record) then
    local queue, at = line.queue_of({}, name), #answer
    answer[at + 1], answer[at + 2], answer[at + 3] = name, not kind and record, kind and 0 or left_of(name, record)
    answer[at + 4], answer[at + 5], answer[at + 6] = queue and line.callers(queue) or 0, kind or '', holders or {}
  end
end
return answer
