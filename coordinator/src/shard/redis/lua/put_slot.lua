-- Puts a slot in a mode, in the name of an epoch; a bit a slot says whether it is open.
local function put_slot(slots, open, slot, mode, epoch)
  redis.call('SETRANGE', slots, slot * 5, struct.pack('>c1I4', mode, epoch))
  redis.call('SETBIT', open, slot, mode == 'O' and 1 or 0)
end
