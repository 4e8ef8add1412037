-- The slot that a text names as "{slot}", from the packed states: its mode letter and epoch; and, where it
-- comes here, what this life knows of its keys. A slot that comes here is stored as "B" once a mover said
-- which tokens its former shard made: until then, as "I", those made here may be lower.
--
-- That knowledge is a set, <prefix>:life:<life>:import:<slot>: "*" where the list of what its former shard
-- holds is complete; "k" with the name of each record in the list; "p" with each that a proof was brought
-- for. It may be lost: proofs are asked for then.
local function slot_of(text, slots)
  local slot = string.match(text, '{(%d+)}')
  local at = slot * 5
  local mode, epoch = struct.unpack('>c1I4', redis.call('GETRANGE', slots, at, at + 4))
  if mode ~= 'I' and mode ~= 'B' then return mode, epoch end
  local begun, noted = mode == 'B', false
  local import = {name = string.sub(slots, 1, -#'slots' - 1) .. 'import:' .. slot}

  -- Remembers something for as long as the slot comes here; for an hour at most, so that nothing is left of
  -- it after this life.
  function import.note(something)
    redis.call('SADD', import.name, something)
    if not noted then redis.call('PEXPIRE', import.name, '3600000') end
    noted = true
  end

  -- Whether the former shard surely does not hold `key`, nor ever will.
  function import.frees(key)
    if not begun then return false end
    local found = redis.call('SMISMEMBER', import.name, '*', 'k' .. key, 'p' .. key)
    return found[3] == 1 or (found[1] == 1 and found[2] == 0)
  end

  return 'I', epoch, import
end
