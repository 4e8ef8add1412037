#!lua flags=allow-oom
--[[
commit: write what a rule changed of the whole shard, if nothing of what it read has changed.

KEYS     as in shared/whole.lua
ARGV[1]  replid    of the life that the keys are named by
ARGV     life      its name; empty if nothing of a life is written
         slots     1: their states are changed
         stamp     of the read
         not_after the last millisecond, by the server's clock, at which the answer holds
         family    prefix of keys named by a life
         te, ctr   the last token, if it is lower; empty if it stays
         map       the version at which the shard is quiet from now on; empty if that stays
         news      incarnation and version of a record that comes into force, or empty
         asides    as in `copy_in`, up to the slot; and slots, 4 bytes each, for which nothing stays put aside; or empty
         made      with an arming: "never": no counter was made in these slots, or "lost": a dead shard had some of them,
                   or "kept"; else empty; and the origin, as in `counters`
         commands  each a number of words, and the words

Returns {-1} another life · {0} something has changed, or it is too late: nothing is written · {1, te, ctr} written; the
last token then

May be repeated.
]]
if not same_life(ARGV[1]) then return {-1} end
return commit_whole(KEYS, ARGV)
