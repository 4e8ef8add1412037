-- Changes the stored letter and epoch of a slot; one bit per slot says whether it is open.
local function put_slot(slots, open, slot, from, to, epoch)
  if slot > 0 and redis.call('GETRANGE', slots, slot * 5 - 1, slot * 5 - 1) == '' then
    local ends = #redis.call('GET', slots)
    redis.call('SETRANGE', slots, ends, string.rep('-\0\0\0\0', slot - ends / 5))
  end
  redis.call('SETRANGE', slots, slot * 5, struct.pack('>c1I4', to, epoch))
  if from == 'O' or to == 'O' then redis.call('SETBIT', open, slot, to == 'O' and 1 or 0) end
end

-- Forgets the list of held keys of a slot that came here.
local function forget_import(slots, slot, from)
  if from == 'I' or from == 'B' or from == 'A' then redis.call('UNLINK', import_name(slot, slots)) end
end
