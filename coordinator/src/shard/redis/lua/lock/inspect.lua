#!lua flags=no-writes
--[[
inspect: the holder of a lock, and its waiters.

KEYS[1]  state   hash: arm, grace
KEYS[2]  record  "nonce|label|offset|tokens|te|base|arm|flags"
ARGV[1]  replid  of the life that KEYS[1] is named by

Returns {-1} unarmed; or {1, now, record | nothing if it is free, remaining_ms, nonces, tickets}: the nonces of
  all tickets in order, ended ones too; and per ticket its nonce and text, in no order
]]
if not same_life(ARGV[1]) then return {-1} end
local is_live, now = live_records(KEYS[1])
if not is_live then return {-1} end
local record, remaining = redis.pcall('GET', KEYS[2]), redis.call('PTTL', KEYS[2])
if not is_live(record) then record, remaining = false, 0 end
local queue = line.queue_of({}, KEYS[2])
if not queue then return {1, now, record, remaining, {}, {}} end
local nonces = redis.call('ZRANGE', queue.places, 0, -1)
local tickets = redis.pcall('HGETALL', queue.tickets)
return {1, now, record, remaining, nonces, tickets.err and {} or tickets}
