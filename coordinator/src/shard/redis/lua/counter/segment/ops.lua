-- Deposits and deductions of many requests at once, each with its own id, without loans. If all are
-- possible in any order, a few commands apply them; if one is not allowed, nothing is done, and
-- each is applied alone.

local function none_in(hash, asked)
  local found = read('HMGET', hash, unpack(asked))
  for i = 1, #found do
    if found[i] then refuse('recorded') end
  end
end

local function must_be_new(segment, ids, asked, first)
  none_in(whole(ids), asked)
  if segment.open > 0 then none_in(whole(part(segment, 'open')), asked) end
  if first * RANKS_PER_MS > segment.packed then return end
  for _, id in ipairs(asked) do
    if packed_entry(segment, id) then refuse('recorded') end
  end
end

-- Whether answers are dropped one by one for these requests. Then each must be applied alone, because the drops for one
-- request decide whether the next is too old, and which reservations expire before it.
local function drops_one_by_one(segment, first, more)
  local is_old = segment.oldest and segment.oldest <= now - segment.window
  local over = remembered_count(segment) + more - segment.ids_max
  if not is_old and over <= 0 then return false end
  local few = segment.packed_count == 0 and (segment.held ~= 0 or over > segment.newest_count)
  return few or first <= now - segment.at_least
end

-- `first` and `last`: the least and the greatest time of the ids; `coming` and `going`: the sums of the deposits and of
-- the deductions; `entries`: {id, entry, id, entry...}; `effects`: as in `log.lua`, of an account with a log.
function rules.ops(segment, generation, first, last, coming, going, asked, entries, effects)
  certain(segment)
  known(segment, generation, last)
  remembered(segment, first)
  timely(segment, last)
  not_frozen(segment)
  acceptable(segment, last, coming == 0 and 'deduct' or 'deposit')
  must_fit(segment, coming)
  if first <= now - segment.window or drops_one_by_one(segment, first, #asked) then refuse('each') end
  -- References are refused.
  if effects ~= '' and not segment.log then refuse('each') end
  local ids = part(segment, 'ids')
  must_be_new(segment, ids, asked, first)
  expire_due(segment)
  if less(segment.value, going) then refuse('each') end
  make_room(segment, #asked)
  set_value(segment, subtract(add(segment.value, coming), going))
  set(segment, 'version', segment.version + #asked - 1)
  log.effects(segment, #asked, effects)
  if last > segment.newest then set(segment, 'newest', last) end
  -- From now on only the stored data of these ids is known.
  whole(ids)
  ids.known = {}
  send('HSET', ids.name, entries)
  add_records(segment, first, last, #asked, table.concat(entries))
  return 'D'
end

-- The same requests, each alone.
local function singles(ops)
  local group, _, _, _, _, _, _, asked, entries, effects, others = unpack(ops)
  local each, at = cmsgpack.unpack(others), 1
  for i, other in ipairs(each) do
    local id, time, generation, kind, amount, caller = asked[i], unpack(other)
    local content, state = string.sub(entries[2 * i], 1, 8), 'D'
    local text, reference = '', ''
    if effects ~= '' then
      local last = at + 1 + struct.unpack('>I2', effects, at)
      reference, text = string.match(string.sub(effects, at + 2, last), '^.%d+(~?)(.*)$')
      if reference == '~' then reference, text = '~' .. string.sub(text, 1, 16), string.sub(text, 17) end
      text, at = string.sub(text, 2), last + 1
    end
    each[i] = {group, 'op', id, time, generation, content, kind, amount, state, caller, {}, 0, text, reference}
  end
  return each
end
