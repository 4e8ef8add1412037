-- The slot that a text names as "{slot}", from the packed states: its mode letter and epoch; and, where it
-- comes here, what this life knows of its keys.
--
-- That is a set, <prefix>:life:<life>:import:<slot>: "!" where a mover said which tokens its former shard
-- made: until then those made here may be lower; "*" where the list of what its former shard holds is
-- complete; "k" with the name of each record in the list; "p" with each that a proof was brought for. It
-- may be lost: a mover has to import again then, and proofs are asked for again.
local function slot_of(text, slots)
  local slot = string.match(text, '{(%d+)}')
  local at = slot * 5
  local mode, epoch = struct.unpack('>c1I4', redis.call('GETRANGE', slots, at, at + 4))
  if mode ~= 'I' then return mode, epoch end
  local import = {name = string.sub(slots, 1, -#'slots' - 1) .. 'import:' .. slot}

  -- Remembers something for as long as the slot comes here; for an hour at most, so that nothing is left of
  -- it after this life.
  function import.note(something)
    redis.call('SADD', import.name, something)
    redis.call('PEXPIRE', import.name, '3600000')
  end

  -- Whether the former shard surely does not hold `key`, nor ever will.
  function import.frees(key)
    local found = redis.call('SMISMEMBER', import.name, '!', '*', 'k' .. key, 'p' .. key)
    return found[1] == 1 and (found[4] == 1 or (found[2] == 1 and found[3] == 0))
  end

  return mode, epoch, import
end
