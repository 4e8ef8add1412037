-- The parts of a record: nonce, label, offset, tokens, te, base, arm, flags. Nothing if it is not one of ours.
local function parse(record)
  if type(record) ~= 'string' then return nil end
  return string.match(record, '^([^|]*)|([^|]*)|(%d+)|(%d+)|(%d+)|(%d+)|(%d+)|(%d)$')
end
