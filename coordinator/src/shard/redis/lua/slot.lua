-- Mode letter and epoch of the slot that a record's key names, from the packed states.
local function slot_of(key, slots)
  local at = tonumber(string.match(key, '{(%d+)}')) * 8
  local mode, step, epoch = struct.unpack('>c1BI4', redis.call('GETRANGE', slots, at, at + 5))
  return mode, epoch
end
