-- Takes a lock with every check. `call` has the values of its batch: te, arm, grace, and from which epoch it concerns slots;
-- ctr, the counter's name, top, its upper end, and whether its tokens are spent; suffix, the end of every record; the
-- names of slots and of queues; marked, until when a key may have a queue; keep, how long a ticket lasts; waiters, the
-- most tickets of a queue; more, as the operations say it; and waited, the keys that have a queue. For its queues it is
-- their shard.

-- The queue of a key, as `line.queue_of`.
local function queue_of(call, key, may)
  call.now = time_ms()
  return line.queue_of(call, key, may)
end

-- The ticket of operation i, nothing if it does not queue; and the epoch of its proof.
local function more_of(call, i, head)
  local more = string.sub(call.more, 45 * i - 44, 45 * i)
  local claim, proof = tonumber(string.sub(more, 21, 30)), tonumber(string.sub(more, 36, 45))
  if not claim or claim == 0 then return nil, proof end
  local label, tokens = string.match(head, '^[^|]*|([^|]*)|%d+|(%d+)$')
  return {label = label, sent = string.sub(more, 1, 20), tokens = tokens, claim = claim, kind = 'm', count = 1,
    capacity = 1, preferred = false, callers = string.sub(more, 31, 35)}, proof
end

-- Queues for a key, if `ticket` asks for that, and gives `answer`. If there is a `holder`, it gets a place; if that is
-- a nonce, and not empty, the first waiter tells its client that the key is contended.
local function wait(call, answer, queue, key, nonce, ticket, holder, told)
  queue = ticket and (queue or queue_of(call, key, true))
  if not queue then return answer end
  local before, new = line.queue_up(queue, nonce, ticket)
  if not before then return holder and new and {7, new} or answer end
  call.waited[key] = true
  if not holder then return answer end
  if before == 0 and holder ~= '' and (not new or told == '0') then line.tell(queue, holder, 'contended', holder) end
  answer[4] = before
  return answer
end

-- Drops the ticket of a nonce, if there is a queue, and gives `answer`.
local function leave(queue, nonce, answer)
  if queue then line.drop(queue, nonce) end
  return answer
end

-- Takes the lock of operation i; its slot is checked if it has to `look`.
local function take(call, i, look, key, head, lease)
  local queue = call.waited[key] and queue_of(call, key)
  local ticket, proof = more_of(call, i, head)
  local nonce, mode, epoch, import = string.match(head, '^[^|]*'), 'O', nil, nil
  if look then
    mode, epoch, import = slot_of(key, call.slots)
    local now, ends = time_ms(), grace_of(call.grace, call.from, epoch)
    if mode == '-' then return {3, epoch} end
    if now < ends then
      if mode == 'S' then return {8, epoch, -1} end
      return wait(call, {4, ends - now}, queue, key, nonce, ticket)
    end
  end
  local record, starved, held = redis.pcall('GET', key), false, nil
  if type(record) == 'table' then
    call.now = time_ms()
    record = shares.load(call, key, nonce, record)
    if record and record.err then return 6 end
    held, record = record, false
  end
  local holder, label, offset, its_tokens, its_te, its_base, its_arm, told, since, its_lease = parse(record)
  if record and not holder then return 6 end
  if import and proof == epoch then import.note('p' .. key) end
  local free = its_arm ~= call.arm and (mode == 'O' or (import and import.frees(key)))
  if queue and free then
    record, starved = line.pass(queue, key, nonce, held, 0)
    if type(record) == 'table' then held, record = record, false end
    holder, label, offset, its_tokens, its_te, its_base, its_arm, told, since, its_lease = parse(record)
  end
  if held and shares.is_live(held) then return leave(queue, nonce, {10, held.kind}) end
  local is_held = its_arm == call.arm
  if mode == 'S' and not (is_held and holder == nonce) then
    return leave(queue, nonce, {8, epoch, is_held and -1 or 0})
  end
  if is_held then
    if holder ~= nonce then
      return wait(call, {2, left_of(key, record, true), label, -1}, queue, key, nonce, ticket, holder, told)
    end
    keep(key, lease, call.arm, nonce, label, offset, its_tokens, its_te, its_base, its_arm, told, since, its_lease)
    if queue then line.drop(queue, nonce) end
    return {1, tonumber(its_te), its_base + offset, tonumber(its_tokens), queue and line.contended(queue) or 0}
  end
  if not free then return wait(call, {9, epoch}, queue, key, nonce, ticket) end
  if call.spent or starved then return 5 end
  redis.call('SET', key, head .. call.suffix .. lease, 'PX', lease)
  return 0
end
