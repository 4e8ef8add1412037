#!lua
--[[
claim: as `commit`, to begin to found a topology with this server as its home.

KEYS     as in shared/whole.lua
ARGV[1]  replid  of the life that the keys are named by
ARGV     as in `commit`

Returns as `commit`

Without allow-oom: nothing is founded on a full server.
]]
if not same_life(ARGV[1]) then return {-1} end
return commit_whole(KEYS, ARGV)
