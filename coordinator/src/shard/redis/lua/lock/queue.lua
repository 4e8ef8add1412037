-- The waiters for a key: those that are preferred, then the others; each first come, first served. Beside the record
-- <prefix>:{slot}:... there are
--   <prefix>:queue:{slot}:...    sorted set: nonce, by its number of arrival, which is negative for a preferred one
--   <prefix>:tickets:{slot}:...  hash: nonce to
--                                "label|sent|tokens|claim_ms|kind|shares|capacity|preferred|callers|ends_ms|keep_ms";
--                                sent has a fixed width, so that texts compare; preferred is 0 or 1; so many callers wait;
--                                it was to last keep_ms
-- which expire with the ticket that ends last.
--
-- A queue's `shard` has the time and the epochs: now, te, arm; the counter's name and upper end: ctr, top; its
-- value once tokens were made since: counter; and, if tickets may be written, the name of the mark of queues and its
-- end: queues, marked; how long tickets last: keep; how many a queue may have: waiters. Numbers for commands are
-- texts: formatting one costs as much as the command.

local line = {}

-- The name of a key's sorted set; its prefix; the rest.
local function places_of(key)
  local prefix, text = string.match(key, '^([^{]*)({%d+}:.*)$')
  return prefix .. 'queue:' .. text, prefix, text
end

-- `keys`, or none of them if the names of their queues are all free. For one key, reading its queue is as cheap.
function line.waited_for(keys)
  local places, waited = {}, {}
  if #keys > 1 then
    for i, key in ipairs(keys) do places[i] = places_of(key) end
    if redis.call('EXISTS', unpack(places)) == 0 then return waited end
  end
  for _, key in ipairs(keys) do waited[key] = true end
  return waited
end

-- A key's queue, and the number of its tickets: count; nothing if there is no queue, unless there
-- `may` be one, or if its name has another type. After this only commands on its tickets can fail.
function line.queue_of(shard, key, may)
  local places, prefix, text = places_of(key)
  local count = redis.pcall('ZCARD', places)
  if type(count) ~= 'number' or (count == 0 and not may) then return nil end
  local tickets, channel = prefix .. 'tickets:' .. text, prefix .. 'turn:'
  return {shard = shard, places = places, tickets = tickets, channel = channel, text = text, count = count}
end

-- Whether a ticket waits, or did until lately: 1 or 0.
function line.contended(queue)
  return queue.count > 0 and 1 or 0
end

-- How many callers wait: of more than 128 tickets (COUNTED_MAX) one each.
function line.callers(queue)
  if queue.count > 128 then return queue.count end
  local callers = 0
  local tickets = redis.pcall('HGETALL', queue.tickets)
  for i = 2, #tickets, 2 do
    callers = callers + (string.match(tickets[i], '|(%d+)|%d+|%d+$') or 1)
  end
  return callers
end

-- Removes the ticket of `nonce`, if it has one.
function line.drop(queue, nonce)
  if redis.call('ZREM', queue.places, nonce) == 0 then return end
  queue.count = queue.count - 1
  redis.pcall('HDEL', queue.tickets, nonce)
end

-- The ticket of `nonce`, in its parts. If it ends later than it was to last, the server's clock was set back since: it
-- lasts from now on.
local function ticket_of(queue, nonce)
  local text = redis.pcall('HGET', queue.tickets, nonce)
  if type(text) ~= 'string' then return nil end
  local label, sent, tokens, claim, kind, count, capacity, preferred, ends, keep =
    string.match(text, '^([^|]*)|(%d+)|(%d+)|(%d+)|(%a)|(%d+)|(%d+)|(%d)|%d+|(%d+)|(%d+)$')
  if label and tonumber(ends) > queue.shard.now + keep then
    ends = string.format('%d', queue.shard.now + keep)
    redis.pcall('HSET', queue.tickets, nonce, (string.gsub(text, '%d+|%d+$', ends .. '|' .. keep)))
  end
  return label and {label = label, sent = sent, tokens = tokens, claim = claim, kind = kind, count = tonumber(count),
    capacity = tonumber(capacity), preferred = preferred == '1', ends = tonumber(ends)}
end

-- Takes some tickets at random and drops those that have ended. Returns how many it dropped, and how
-- long until the next of the others ends.
local function sweep(queue)
  local now, dropped, soonest = queue.shard.now, 0, math.huge
  for _, nonce in ipairs(redis.call('ZRANDMEMBER', queue.places, '16')) do
    local ticket = ticket_of(queue, nonce)
    if ticket and now <= ticket.ends then
      soonest = math.min(soonest, ticket.ends - now)
    else
      line.drop(queue, nonce)
      dropped = dropped + 1
    end
  end
  return dropped, soonest
end

-- Extends the queue's expiry to the end of a ticket that is sent now.
local function prolong(queue)
  local shard = queue.shard
  -- At a time, not after one: until 7.2 the server's clock goes on during a script.
  local ends = string.format('%d', shard.now + shard.keep)
  redis.call('PEXPIREAT', queue.places, ends)
  redis.call('PEXPIREAT', queue.tickets, ends)
  if shard.marked < shard.now + shard.keep then
    shard.marked = shard.now + 2 * shard.keep
    redis.call('SET', shard.queues, string.format('%d', shard.marked), 'PX', 2 * shard.keep)
  end
end

-- The number of arrival of a new ticket: after all, or after those that are preferred.
local function next_number(queue, preferred)
  local least, last = preferred and -2 ^ 52 or 0, nil
  if preferred then
    last = redis.call('ZREVRANGEBYSCORE', queue.places, '(0', '-inf', 'WITHSCORES', 'LIMIT', '0', '1')[2]
  elseif queue.count > 0 then
    last = redis.call('ZRANGE', queue.places, '-1', '-1', 'WITHSCORES')[2]
  end
  return math.max(tonumber(last or least), least) + 1
end

-- Gives `nonce` the last place, if its ticket is preferred the last of those; the ticket has label, sent, tokens, claim
-- in ms, kind, count, capacity, preferred, callers. A nonce with a place keeps it, with the later `sent`. Returns how many are before it, and whether it is new; or nothing, and how long until a place may be free:
-- no time if a key that is not Ringfence's has the name of the tickets.
function line.queue_up(queue, nonce, ticket)
  local shard = queue.shard
  local before = queue.count > 0 and redis.call('ZRANK', queue.places, nonce)
  local known = before and ticket_of(queue, nonce)
  local sent = known and known.sent > ticket.sent and known.sent or ticket.sent
  local preferred = (known or ticket).preferred
  local text = string.format('%s|%s|%s|%d|%s|%d|%d|%d|%d|%d|%s', ticket.label, sent, ticket.tokens, ticket.claim,
    ticket.kind, ticket.count, ticket.capacity, preferred and 1 or 0, ticket.callers, shard.now + shard.keep, shard.keep)
  local new = not before
  if new and queue.count >= shard.waiters then
    local dropped, soonest = sweep(queue)
    if dropped == 0 then return nil, soonest end
  end
  local set = redis.pcall('HSET', queue.tickets, nonce, text)
  if type(set) ~= 'number' then return nil end
  if new then
    redis.call('ZADD', queue.places, next_number(queue, preferred), nonce)
    before = preferred and redis.call('ZRANK', queue.places, nonce) or queue.count
    queue.count = queue.count + 1
  end
  prolong(queue)
  return before, new
end

-- Sends a message about the queue's key to the client of `nonce`. The key comes last: it may have any bytes. If the
-- user lacks the right to send it, nothing else fails: the client asks again in any case.
function line.tell(queue, nonce, ...)
  local message = table.concat({...}, '|') .. '|' .. queue.text
  redis.pcall('PUBLISH', queue.channel .. string.match(nonce, '^[^:]*'), message)
end

-- Tells the clients of a record of shares that the queue's key is contended: of 64 entries (PASS_MAX).
function line.tell_holders(queue, held)
  local _, found = shares.read(queue.shard, held.key)
  for i = 1, math.min(found and #found or 0, 128), 2 do line.tell(queue, found[i], 'contended', found[i]) end
end

-- The nonce of the first ticket that has not ended, the ticket, and whether there is another: 1 or 0.
-- Drops those before it.
function line.first(queue)
  while queue.count > 0 do
    local nonce = redis.call('ZRANGE', queue.places, '0', '0')[1]
    local ticket = ticket_of(queue, nonce)
    if ticket and queue.shard.now <= ticket.ends then return nonce, ticket, queue.count > 1 and 1 or 0 end
    line.drop(queue, nonce)
  end
end

-- Whether `nonce`, which may be preferred, goes before all tickets but its own.
function line.is_next(queue, nonce, preferred)
  local first, ticket = line.first(queue)
  return not first or first == nonce or (preferred and not ticket.preferred)
end

-- Makes `tokens` tokens. Returns the counter before them; nothing if too few are left.
function line.draw(shard, tokens)
  local ctr = redis.call('INCRBY', shard.ctr, tokens)
  if ctr > shard.top then
    redis.call('DECRBY', shard.ctr, tokens)
    return nil
  end
  shard.counter = ctr
  return ctr - tokens
end

-- Grants to the first ticket, of `nonce`. Returns the record, as a text or with `held`'s shares; or nothing, if too few
-- tokens are left.
local function grant_first(queue, key, nonce, ticket, told, held)
  local shard, tokens = queue.shard, ticket.tokens
  local base = line.draw(shard, tokens)
  if not base then return nil end
  line.drop(queue, nonce)
  if ticket.kind == 'm' then
    local record = string.format('%s|%s|1|%s|%s|%d|%s|%d|%d|%s', nonce, ticket.label, tokens, shard.te, base,
      shard.arm, told, shard.now, ticket.claim)
    redis.call('SET', key, record, 'PX', ticket.claim)
    return record, base
  end
  if not held or held.kind ~= ticket.kind then held = shares.new(shard, key, ticket.kind, true) end
  -- A nonce that has shares already, by a renewal, may have left its ticket.
  local entry = shares.own(held, nonce) or {}
  entry.label, entry.offset, entry.tokens, entry.te = ticket.label, 1, tokens, shard.te
  entry.base = string.format('%d', base)
  shares.put(held, nonce, entry, ticket.count, ticket.claim)
  return held, base
end

-- Grants `key` to its first tickets while they fit, for their claims, and notifies the clients of these nonces, except
-- of the caller. The key has no live mutex. `held` is its record of shares, or nothing; `left` shares are held
-- elsewhere, all of `kind`, unless there are none. Returns the record that was granted last, if any; and whether the
-- first ticket fits, but too few tokens are left.
function line.pass(queue, key, caller, held, left, kind)
  local granted
  -- PASS_MAX.
  for _ = 1, 64 do
    local nonce, ticket, told = line.first(queue)
    local may = nonce and (left == 0 or ticket.kind == kind)
    if not may or not shares.fit(held, ticket.kind, ticket.count, ticket.capacity, left) then break end
    local record, base = grant_first(queue, key, nonce, ticket, told, held)
    if not record then return granted, true end
    if nonce ~= caller then
      line.tell(queue, nonce, 'turn', nonce, queue.shard.te, string.format('%d', base + 1), ticket.tokens, ticket.claim,
        ticket.sent, told)
    end
    granted = record
    if ticket.kind == 'm' then break end
    held = record
  end
  return granted, false
end
