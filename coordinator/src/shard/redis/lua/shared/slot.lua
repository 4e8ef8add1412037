-- A slot as it is stored: the letter of its mode, and the epoch of its last change. A slot that comes here is "I" until
-- a mover says which tokens its former shard made: until then tokens made here may be lower. Then it is "B", and "A"
-- once all of its counters are here too. A slot of a rank that this life has not heard of is shut since epoch 0.
local function stored(slot, slots)
  local packed = redis.call('GETRANGE', slots, slot * 5, slot * 5 + 4)
  if packed == '' then return '-', 0 end
  return struct.unpack('>c1I4', packed)
end

-- The name of a life's knowledge about the keys of a slot that comes here: a set, which may be lost, because then
-- proofs are required. Its members: "*" if the list of the keys held at its former shard is complete; "k" with the name
-- of each record in the list; "p" with the name of each record that a proof was brought for.
local function import_name(slot, slots)
  return string.sub(slots, 1, -#'slots' - 1) .. 'import:' .. slot
end

-- The slot that a name has in braces. These are the first braces in it: no prefix has any, and the key comes later.
local function slot_in(name)
  return string.match(name, '^[^{]*{(%d+)}')
end

-- The slot that a text names as "{slot}": its mode letter and epoch; and, if it comes here, this life's knowledge of
-- its keys.
local function slot_of(text, slots)
  local slot = slot_in(text)
  local mode, epoch = stored(slot, slots)
  if mode ~= 'I' and mode ~= 'B' and mode ~= 'A' then return mode, epoch end
  local name = import_name(slot, slots)
  local import = {begun = mode ~= 'I'}

  -- Adds to that knowledge for as long as the slot comes here. It has no expiry: a list that continues without its
  -- first pieces would free the keys that these name.
  function import.note(...) redis.call('SADD', name, ...) end

  -- Whether the former shard certainly does not hold `key`, now or later.
  function import.frees(key)
    if mode == 'I' then return false end
    local found = redis.call('SMISMEMBER', name, '*', 'k' .. key, 'p' .. key)
    return found[3] == 1 or (found[1] == 1 and found[2] == 0)
  end

  return 'I', epoch, import
end
