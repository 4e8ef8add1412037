-- Mode letter and epoch of the slot that a record's key names, from the packed states.
local function slot_of(key, slots)
  local at = tonumber(string.match(key, '{(%d+)}')) * 5
  return struct.unpack('>c1I4', redis.call('GETRANGE', slots, at, at + 4))
end
