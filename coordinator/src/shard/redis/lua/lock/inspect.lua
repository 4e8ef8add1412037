#!lua flags=no-writes
--[[
inspect: the holders of a lock, and its waiters.

KEYS[1]  state   hash: arm, grace, grace_ms, grace_from
KEYS[2]  record  "nonce|label|offset|tokens|te|base|arm|flags|since_ms|lease_ms", or a hash with an entry per holder
ARGV[1]  replid  of the life that KEYS[1] is named by

Returns {-1} unarmed; or {1, now, record | nothing if it is no mutex or free, remaining_ms, nonces, tickets, kind | empty,
  shares}: the nonces of all tickets in order, ended ones too; per ticket its nonce and text, in no order; and the same
  per holder of a share
]]
if not same_life(ARGV[1]) then return {-1} end
local is_live, shard = live_records(KEYS[1])
if not is_live then return {-1} end
local record, remaining = redis.pcall('GET', KEYS[2]), 0
local kind, holders
if type(record) == 'table' then kind, holders = shares.read(shard, KEYS[2]) end
if is_live(record) then remaining = left_of(KEYS[2], record) else record = false end
local queue = line.queue_of({}, KEYS[2])
if not queue then return {1, shard.now, record, remaining, {}, {}, kind or '', holders or {}} end
local nonces = redis.call('ZRANGE', queue.places, 0, -1)
local tickets = redis.pcall('HGETALL', queue.tickets)
return {1, shard.now, record, remaining, nonces, tickets.err and {} or tickets, kind or '', holders or {}}
