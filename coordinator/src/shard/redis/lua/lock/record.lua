-- The parts of a record: nonce, label, offset, tokens, te, base, arm, flags, since_ms, lease_ms. Nothing if it is not one
-- of Ringfence.
local function parse(record)
  if type(record) ~= 'string' then return nil end
  return string.match(record, '^([^|]*)|([^|]*)|(%d+)|(%d+)|(%d+)|(%d+)|(%d+)|(%d)|(%d+)|(%d+)$')
end

-- How many milliseconds are left of the record of a mutex. No more than its lease, with which its text ends: if it ends
-- later, the server's clock was set back since; if it `may_write`, it ends then.
local function left_of(key, record, may_write)
  local left, lease = redis.call('PTTL', key), tonumber(string.match(record, '%d+$'))
  if left > lease and may_write then redis.call('PEXPIRE', key, lease) end
  return math.min(left, lease)
end

-- Whether `record` is that of `nonce`. Creates no string.
local function is_of(record, nonce)
  return record and string.find(record, nonce, 1, true) == 1 and string.byte(record, #nonce + 1) == 124
end
