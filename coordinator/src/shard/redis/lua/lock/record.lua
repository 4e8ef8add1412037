-- The parts of a record: nonce, label, offset, tokens, te, base, arm, flags. Nothing if it is not one of Ringfence.
local function parse(record)
  if type(record) ~= 'string' then return nil end
  return string.match(record, '^([^|]*)|([^|]*)|(%d+)|(%d+)|(%d+)|(%d+)|(%d+)|(%d)$')
end

-- Whether `record` is that of `nonce`. Creates no string.
local function is_of(record, nonce)
  return record and string.find(record, nonce, 1, true) == 1 and string.byte(record, #nonce + 1) == 124
end
