#!lua flags=allow-oom
--[[
copy: keep a copy of the record, ahead of everything that is done in its name.

KEYS[1]  pointer  "topology-id home-address"
KEYS[2]  fence    greatest incarnation seen
KEYS[3]  copy     newest topology record seen: "n version record"
KEYS[4]  lives    set of every life that ever had anything here
ARGV[1]  replid   of the life that KEYS[2..3] are named by
ARGV[2]  life     its name
ARGV[3]  id       of the topology
ARGV[4]  n        incarnation of the record
ARGV[5]  version  of the record
ARGV[6]  record   its text
ARGV[7]  pointer  to the record's home

Returns {-1} another life · {-2, fence} stale · {-3, pointer or nil} not a member of this topology ·
{1} this copy is kept, or a newer one was

May be repeated. The home moves only in a later incarnation: whoever is not stale knows it. What
belongs to former lives is unlinked by arm and restore.
]]
if not same_life(ARGV[1]) then return {-1} end
local pointer = redis.call('GET', KEYS[1])
if string.match(pointer or '', '^%x+') ~= ARGV[3] then return {-3, pointer} end
local fence = below_fence(KEYS[2], ARGV[4])
if fence then return {-2, fence} end
redis.call('SADD', KEYS[4], ARGV[2])
if pointer ~= ARGV[7] then redis.call('SET', KEYS[1], ARGV[7]) end
keep_copy(KEYS[3], ARGV[4], ARGV[5], ARGV[6])
return {1}
