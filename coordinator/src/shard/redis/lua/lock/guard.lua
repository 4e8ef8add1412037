-- Whether token (te, ctr) is above that of a record. All parts are below 2^53: exact.
local function above(te, ctr, its_te, its_base, its_offset)
  te, its_te = tonumber(te), tonumber(its_te)
  return te > its_te or (te == its_te and tonumber(ctr) > its_base + its_offset)
end

-- Gives a grant, in its parts, a full lease of `key`, as one of this arming.
local function keep(key, lease, arm, nonce, label, offset, tokens, te, base, its_arm, told)
  if its_arm == arm then
    redis.call('PEXPIRE', key, lease)
  else
    local record = string.format('%s|%s|%d|%d|%s|%s|%s|%s', nonce, label, offset, tokens, te, base, arm, told)
    redis.call('SET', key, record, 'PX', lease)
  end
end
