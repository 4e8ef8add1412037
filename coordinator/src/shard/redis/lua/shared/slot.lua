-- A slot as it is stored: its mode's letter, and the epoch of its last change. One that comes here is "B" once
-- a mover said which tokens its former shard made: until then, as "I", those made here may be lower. It is "A" once
-- all of its counters are here too.
local function stored(slot, slots)
  return struct.unpack('>c1I4', redis.call('GETRANGE', slots, slot * 5, slot * 5 + 4))
end

-- Where a life remembers what it knows of the keys of a slot that comes here: a set, which may be lost, as
-- proofs are asked for then. In it are "*" where the list of what its former shard holds is complete; "k" with
-- the name of each record in the list; "p" with each that a proof was brought for.
local function import_name(slot, slots)
  return string.sub(slots, 1, -#'slots' - 1) .. 'import:' .. slot
end

-- The slot that a name has in braces. Those are the first braces in it: no prefix has any, and a key comes later.
local function slot_in(name)
  return string.match(name, '^[^{]*{(%d+)}')
end

-- The slot that a text names as "{slot}": its mode letter and epoch; and, where it comes here, what this life
-- knows of its keys.
local function slot_of(text, slots)
  local slot = slot_in(text)
  local mode, epoch = stored(slot, slots)
  if mode ~= 'I' and mode ~= 'B' and mode ~= 'A' then return mode, epoch end
  local name = import_name(slot, slots)
  local import = {}

  -- Remembers something for as long as the slot comes here. It has no expiry: a list that goes on without its
  -- first pieces would free what these name.
  function import.note(...) redis.call('SADD', name, ...) end

  -- Whether the former shard certainly does not hold `key`, now or later.
  function import.frees(key)
    if mode == 'I' then return false end
    local found = redis.call('SMISMEMBER', name, '*', 'k' .. key, 'p' .. key)
    return found[3] == 1 or (found[1] == 1 and found[2] == 0)
  end

  return 'I', epoch, import
end
