#!lua flags=allow-oom
--[[
take_list: what is left in the former shard of slots that come here.

KEYS[1]  ctr     the token counter
KEYS[2]  state   hash: arm, te, grace, shut (epochs; milliseconds of the server's clock)
KEYS[3]  slots   5 bytes a slot
KEYS[4]  queues  there while some key of this life may have a queue
KEYS[5]..        records: "nonce|label|offset|tokens|te|base|arm|flags"
ARGV[1]  replid  of the life that KEYS[1..4] are named by
ARGV[2]  epoch   of the move
ARGV[3]  top     the counter's upper end
ARGV[4]  keep_ms a ticket lasts that long after it was last sent
ARGV[5]  waiters tickets in one key's queue, at most
ARGV[6]  complete slots of which nothing else is left, 2 bytes each
ARGV[7].. held 0|1, how many wait, and of each the nonce and "label|sent|tokens|claim_ms": for each record

Returns {-1} unarmed; or {1, slots...}: those that do not come here by that move, of which nothing was taken
]]
if not same_life(ARGV[1]) then return {-1} end
local now, _, te, arm, grace, shut = time_ms(), armed(nil, '', KEYS[2])
if not arm then return {-1} end
local shard = {now = now, te = te, arm = arm, ctr = KEYS[1], top = tonumber(ARGV[3]), queues = KEYS[4],
  marked = tonumber(redis.call('GET', KEYS[4]) or 0), keep = ARGV[4], waiters = tonumber(ARGV[5])}
local epoch, answer, known = tonumber(ARGV[2]), {1}, {}

-- The known keys of a slot that `text` names, and the notes to be stored; false if the slot is
-- refused.
local function import_of(text)
  local slot = tonumber(slot_in(text))
  if known[slot] == nil then
    local _, its_epoch, import = slot_of(text, KEYS[3])
    known[slot] = import and its_epoch == epoch and {of = import, notes = {}} or false
    if not known[slot] then answer[#answer + 1] = slot end
  end
  return known[slot]
end

-- The nonce that holds a record; false where nobody does, so that it may be granted.
local function holder_of(key)
  local record = redis.pcall('GET', key)
  local holder, _, _, _, _, _, its_arm = parse(record)
  return record and (not holder or its_arm == arm or now < grace) and (holder or '')
end

-- Puts `count` tickets, from ARGV[at] on, before all that came by themselves, behind others that came along.
local function carry(key, at, count)
  local queue, holder = count > 0 and line.queue_of(shard, key, true), count > 0 and holder_of(key)
  if not queue then return end
  for i = at, at + 2 * (count - 1), 2 do
    local nonce, ticket = ARGV[i], {}
    ticket.label, ticket.sent, ticket.tokens, ticket.claim = string.match(ARGV[i + 1], '^([^|]*)|(%d+)|(%d+)|(%d+)$')
    if nonce ~= holder then line.come_along(queue, nonce, ticket, line.by_list) end
  end
end

local records, imports, at = {unpack(KEYS, 5)}, {}, 7
for i, key in ipairs(records) do
  local held, count, import = ARGV[at], tonumber(ARGV[at + 1]), import_of(key)
  if import then
    if held == '1' then import.notes[#import.notes + 1] = 'k' .. key end
    carry(key, at + 2, count)
  end
  imports[i] = import
  at = at + 2 + 2 * count
end
for at = 1, #ARGV[6], 2 do
  local import = import_of('{' .. struct.unpack('>I2', ARGV[6], at) .. '}')
  if import then import.notes[#import.notes + 1] = '*' end
end
for _, import in pairs(known) do
  if import and import.notes[1] then import.of.note(unpack(import.notes)) end
end
if now < grace or now < shut then return answer end
local waited = line.waited_for(records)
for i, key in ipairs(records) do
  local queue = imports[i] and waited[key] and line.queue_of(shard, key)
  if queue and not holder_of(key) and imports[i].of.frees(key, line.first_came_along(queue)) then
    line.pass(queue, key)
  end
end
return answer
