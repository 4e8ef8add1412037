#!lua flags=allow-oom
--[[
restore: put a recovered record in force, if this is still the recovery to do it.

KEYS[1]  pointer  "topology-id home-address"
KEYS[2]  topology the record, and the channel on which its versions are told
KEYS[3]  fence    greatest incarnation seen
KEYS[4]  lives    set of every life that ever had anything here
ARGV[1]  replid   of the life that KEYS[3] is named by, and that the record names as its home's
ARGV[2]  n        incarnation of the record
ARGV[3]  pointer  to be written
ARGV[4]  record   to be written
ARGV[5]  life     that KEYS[3] is named by
ARGV[6]  family   prefix of keys named by a life

Returns {-1} another life · {-2, fence or nil} the fence is not n · {0} a record of this or a later
incarnation is there · {1} written

A later recovery has raised the fence; a second sending of this one finds its own record. A home that
is no shard is never armed: so what former lives left is unlinked here too.
]]
if not same_life(ARGV[1]) then return {-1} end
local fence, n = redis.call('GET', KEYS[3]), header(redis.call('GET', KEYS[2]))
if fence ~= ARGV[2] then return {-2, fence} end
if n and n >= ARGV[2] then return {0} end
redis.call('MSET', KEYS[1], ARGV[3], KEYS[2], ARGV[4])
bury_former(KEYS[4], ARGV[6], ARGV[5])
tell(KEYS[2], ARGV[4])
return {1}
