-- Whether token (te, ctr) is above that of a record. All parts are below 2^53: exact.
local function above(te, ctr, its_te, its_base, its_offset)
  te, its_te = tonumber(te), tonumber(its_te)
  return te > its_te or (te == its_te and tonumber(ctr) > its_base + its_offset)
end

-- Makes every later token of this life greater than (te, ctr). Returns the token epoch then. A quiet mark names it.
local function raise_tokens(quiet, ctr_name, state, te, ctr)
  local its_te, its_ctr = tonumber(redis.call('HGET', state, 'te')), tonumber(redis.call('GET', ctr_name))
  te, ctr = tonumber(te), tonumber(ctr)
  if te < its_te or (te == its_te and ctr <= its_ctr) then return string.format('%d', its_te) end
  redis.call('SET', ctr_name, string.format('%d', ctr))
  if te > its_te then
    redis.call('HSET', state, 'te', te)
    local mark = redis.call('GET', quiet)
    if mark then redis.call('SET', quiet, (string.gsub(mark, '|%d+|', '|' .. te .. '|', 1))) end
  end
  return string.format('%d', te)
end

-- Gives a grant, in its parts, a full lease of `key`, as one of this arming.
local function keep(key, lease, arm, nonce, label, offset, tokens, te, base, its_arm, told, since, its_lease)
  if its_arm == arm and its_lease == lease and since ~= '0' then
    redis.call('PEXPIRE', key, lease)
    return
  end
  -- A grant that did not wait reads no clock: its time comes from what is left of its lease.
  if since == '0' and its_lease then
    since = string.format('%d', time_ms() - its_lease + math.min(redis.call('PTTL', key), its_lease))
  end
  local record = string.format('%s|%s|%d|%d|%s|%s|%s|%s|%s|%s', nonce, label, offset, tokens, te, base, arm, told, since,
    lease)
  redis.call('SET', key, record, 'PX', lease)
end
