-- Deposits and deductions of many at once, each of an id of its own, none of which brings loans. If each can be done
-- in whatever order, a few commands do all; if one may not be, nothing is done, and each is asked alone.

local function must_be_new(ids, asked)
  local found = read('HMGET', whole(ids), unpack(asked))
  for i = 1, #found do
    if found[i] then refuse('recorded') end
  end
  -- All is written, and what is known of these ids is about to be wrong.
  ids.known = {}
end

-- `first` and `last`: the least and the greatest time of the ids; `coming` and `going`: how much is deposited, and
-- deducted, together; `entries`: {id, entry, id, entry...}.
function rules.ops(segment, generation, first, last, coming, going, asked, entries)
  certain(segment)
  known(segment, generation, last)
  remembered(segment, first)
  timely(segment, last)
  not_frozen(segment)
  acceptable(segment, last, coming == 0 and 'deduct' or 'deposit')
  has_room(segment, #asked)
  must_fit(segment, coming)
  local ids = part(segment, 'ids')
  must_be_new(ids, asked)
  expire_due(segment)
  if less(segment.value, going) then refuse('each') end
  set_value(segment, subtract(add(segment.value, coming), going))
  set(segment, 'version', segment.version + #asked - 1)
  if last > segment.newest then set(segment, 'newest', last) end
  send('HSET', ids.name, entries)
  send('RPUSH', whole(part(segment, 'order')), asked)
  segment.count = segment.count + #asked
  return 'D'
end

-- The same requests, each alone.
local function singles(ops)
  local group, _, _, _, _, _, _, asked, entries, others = unpack(ops)
  local each = cmsgpack.unpack(others)
  for i, other in ipairs(each) do
    local id, generation, kind, amount, caller = asked[i], unpack(other)
    local time, content, state = tonumber(string.sub(id, 1, 16)), string.sub(entries[2 * i], 1, 16), 'D'
    each[i] = {group, 'op', id, time, generation, content, kind, amount, state, caller, {}, 0}
  end
  return each
end
