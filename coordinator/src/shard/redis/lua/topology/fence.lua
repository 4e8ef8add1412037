#!lua flags=allow-oom
--[[
fence: have nothing of an earlier incarnation take effect here, and say what did.

KEYS[1]  pointer  "topology-id home-address"
KEYS[2]  topology the record, where this server is or was its home
KEYS[3]  fence    greatest incarnation seen
KEYS[4]  copy     newest topology record seen: "n version record"
KEYS[5]  state    hash: arm, te (epochs); present where this life is armed
KEYS[6]  lives    set of every life that ever had anything here
ARGV[1]  replid   of the life that KEYS[3..5] are named by
ARGV[2]  life     its name
ARGV[3]  id       of the topology
ARGV[4]  n        the incarnation to come

Returns {-1} another life · {-2, fence} it is not below n: nothing is written · {-3, id} a
member of that topology: nothing is written · {1, record, copy, arm, greatest epoch}, nil for each
text that is not there, and for the epoch of a life that is not armed

Raising the fence and answering is one step: what took effect is in the answer, and nothing will.
]]
if not same_life(ARGV[1]) then return {-1} end
local texts = redis.call('MGET', KEYS[1], KEYS[2], KEYS[3], KEYS[4])
local fence, _, _, _, _, id = texts[3], header(texts[2])
id = string.match(texts[1] or '', '^%x+') or id
if id and id ~= ARGV[3] then return {-3, id} end
if fence and fence >= ARGV[4] then return {-2, fence} end
redis.call('SADD', KEYS[6], ARGV[2])
redis.call('SET', KEYS[3], ARGV[4])
local state = redis.call('HMGET', KEYS[5], 'arm', 'te')
local greatest = math.max(tonumber(state[1] or 0), tonumber(state[2] or 0))
return {1, texts[2], texts[4], state[1] and tonumber(state[1]), greatest}
