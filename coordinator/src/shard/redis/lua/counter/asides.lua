-- The names of the parts of a slot's groups that are put aside, as a set.

local function note_aside(asides, name, keep_ms)
  redis.call('SADD', asides, name)
  redis.call('PEXPIRE', asides, keep_ms)
end

local function drop_aside(asides, name)
  unlink_parts(name)
  redis.call('SREM', asides, name)
end

local function drop_asides(asides)
  for _, name in ipairs(redis.call('SMEMBERS', asides)) do drop_aside(asides, name) end
end
