#!lua flags=no-writes
--[[
scan: what is left in slots that are sealed, a page of it.

KEYS[1]  state   hash: arm, grace
KEYS[2]  slots   5 bytes a slot
KEYS[3]  open    a bit a slot
ARGV[1]  replid  of the life that KEYS[1..3] are named by
ARGV[2]  epoch   of the move
ARGV[3]  cursor  0, or what the page before returned
ARGV[4]  prefix  of all names, with its colon
ARGV[5]  pattern of the names of records and of queues
ARGV[6]  count   keys of the server to look at, about
ARGV[7]  most    tickets to tell of one key

Returns {-1} unarmed; or {1, grace_left_ms, cursor | "0" behind the last page, keys...}: text, held 0|1, tickets:
  three a key that is held or waited for; each ticket is a nonce and "label|sent|tokens|claim_ms|ends_ms",
  those that have ended left out

Nothing in grace. Every name comes from the server: none is among KEYS. A key comes by its record, by its
queue, or by both.
]]
if not same_life(ARGV[1]) then return {-1} end
local is_live, now, grace_left = live_records(KEYS[1])
if not is_live then return {-1} end
if grace_left > 0 then return {1, grace_left, '0'} end
local page = redis.call('SCAN', ARGV[3], 'MATCH', ARGV[5], 'COUNT', ARGV[6])
local answer = {1, 0, page[1]}
local start, open = #ARGV[4] + 1, redis.call('GET', KEYS[3])
local sealed = struct.pack('>c1I4', 'S', tonumber(ARGV[2]))

-- Of a foreign name the slot may be none. Most are open: that costs no command.
local function is_sealed(slot)
  if #slot > 5 then return false end
  local bits = string.byte(open, math.floor(slot / 8) + 1) or 0
  if bit.band(bits, bit.rshift(128, slot % 8)) ~= 0 then return false end
  return redis.call('GETRANGE', KEYS[2], slot * 5, slot * 5 + 4) == sealed
end

local texts, names = {}, {}
for _, name in ipairs(page[2]) do
  local at, slot = start, string.match(name, '^{(%d+)}:', start)
  if not slot then at, slot = start + #'queue:', string.match(name, '^queue:{(%d+)}:', start) end
  if slot and is_sealed(slot) then
    texts[#texts + 1] = string.sub(name, at)
    names[#texts] = ARGV[4] .. texts[#texts]
  end
end
if not names[1] then return answer end
local most = tonumber(ARGV[7])

-- The tickets of a record's key, in order.
local function tickets_of(name)
  local queue, found, from = line.queue_of({}, name), {}, 0
  while queue and #found < 2 * most do
    local nonces = redis.call('ZRANGE', queue.places, from, from + most - 1)
    local tickets = nonces[1] and redis.pcall('HMGET', queue.tickets, unpack(nonces))
    if not tickets or tickets.err then break end
    for i, nonce in ipairs(nonces) do
      local ends = string.match(tickets[i] or '', '|(%d+)$')
      if ends and now <= tonumber(ends) and #found < 2 * most then
        found[#found + 1], found[#found + 2] = nonce, tickets[i]
      end
    end
    from = from + most
  end
  return found
end

local records, waited = redis.call('MGET', unpack(names)), line.waited_for(names)
for i, name in ipairs(names) do
  local held, tickets, last = is_live(records[i]), waited[name] and tickets_of(name) or {}, #answer
  if held or tickets[1] then
    answer[last + 1], answer[last + 2], answer[last + 3] = texts[i], held and 1 or 0, tickets
  end
end
return answer
