-- Takes shares with every check. `call` is as for the other locks; base is the counter before the batch.

-- The ticket of a request: "sent|claim_ms|callers", or empty.
local function ticket_for(text, label, tokens, kind, count, capacity, preferred)
  local sent, claim, callers = string.match(text, '^(%d+)|(%d+)|(%d+)$')
  return sent and {label = label, sent = sent, tokens = tokens, claim = claim, kind = kind, count = count,
    capacity = capacity, preferred = preferred, callers = callers}
end

-- How many shares are held at the slot's former shard, at most: none, or by a proof, "epoch|left", of this request's
-- kind. Nothing if that is not known, or if nothing is granted here.
local function left_elsewhere(mode, epoch, import, key, proof)
  if mode == 'O' then return 0 end
  if not import then return nil end
  local its_epoch, left = string.match(proof, '^(%d+)|(%d+)$')
  local proven = its_epoch and tonumber(its_epoch) == epoch and tonumber(left)
  if proven == 0 then import.note('p' .. key) end
  if import.frees(key) then return 0 end
  return import.begun and proven or nil
end

-- The tokens of a share: `base` and `offset`. Those set aside before the call are below one that has passed to a waiter
-- since, beside which this share may be granted. Nothing if too few are left.
local function tokens_above_the_passed(call, offset, tokens)
  if call.spent then return nil end
  if not call.counter then return call.base, offset end
  return line.draw(call, tokens), 1
end

-- Takes shares of `key`; its slot is checked if it has to `look`.
local function share(call, look, key, head, lease, terms, ticket, proof)
  local nonce, label, offset, tokens = string.match(head, '^([^|]*)|([^|]*)|(%d+)|(%d+)$')
  local kind, count, capacity, preferred = string.match(terms, '^(%a)|(%d+)|(%d+)|(%d)$')
  count, capacity, preferred = tonumber(count), tonumber(capacity), preferred == '1'
  local queue = call.waited[key] and queue_of(call, key)
  local mode, epoch, import = 'O', nil, nil
  ticket = ticket_for(ticket, label, tokens, kind, count, capacity, preferred)
  if look then
    mode, epoch, import = slot_of(key, call.slots)
    if mode == '-' then return {3, epoch} end
    local ends = grace_of(call.grace, call.from, epoch)
    if call.now < ends then
      if mode == 'S' then return {8, epoch, -1} end
      return wait(call, {4, ends - call.now}, queue, key, nonce, ticket)
    end
  end

  local record, held, starved = record_at(call, key, nonce), nil, false
  if type(record) == 'table' then
    if record.err then return 6 end
    held, record = record, false
  end
  local holder, _, _, _, _, _, its_arm = parse(record)
  if record and not holder then return 6 end
  local is_mutex = its_arm == call.arm
  local left = left_elsewhere(mode, epoch, import, key, proof)
  if queue and left and not is_mutex then
    local granted, more = line.pass(queue, key, nonce, held, left, kind)
    starved, is_mutex = more, type(granted) == 'string'
    if type(granted) == 'table' then held = granted end
  end

  local own = held and not is_mutex and shares.own(held, nonce)
  if own then
    shares.put(held, nonce, own, own.count, lease)
    if queue then line.drop(queue, nonce) end
    return {1, tonumber(own.te), own.base + own.offset, own.tokens, queue and line.contended(queue) or 0}
  end
  local is_live = held and shares.is_live(held)
  if is_mutex then
    left_of(key, redis.call('GET', key), true)
    return leave(queue, nonce, {10, 'm'})
  end
  if is_live and held.kind ~= kind then return leave(queue, nonce, {10, held.kind}) end
  if mode == 'S' then return leave(queue, nonce, {8, epoch, is_live and held.sum or 0}) end
  if starved then return 5 end
  if left and (not queue or line.is_next(queue, nonce, preferred)) and shares.fit(held, kind, count, capacity, left) then
    local base, offset = tokens_above_the_passed(call, offset, tokens)
    if not base then return 5 end
    if not held or held.kind ~= kind then held = shares.new(call, key, kind, held or record) end
    local entry = {label = label, offset = offset, tokens = tonumber(tokens), te = call.te,
      base = string.format('%d', base)}
    shares.put(held, nonce, entry, count, lease)
    if queue then line.drop(queue, nonce) end
    return {1, tonumber(call.te), base + offset, entry.tokens, queue and line.contended(queue) or 0}
  end
  if left ~= 0 then return wait(call, {9, epoch}, queue, key, nonce, ticket) end
  -- RECHECK_MAX, if no share is held.
  local remaining = is_live and held.soonest - call.now or 1000
  local answer = wait(call, {2, remaining, '', -1}, queue, key, nonce, ticket, '')
  -- No other reader of the holders' processes comes in any more.
  if answer[4] == 0 and is_live and kind == 'r' then line.tell_holders(queue_of(call, key), held) end
  return answer
end
