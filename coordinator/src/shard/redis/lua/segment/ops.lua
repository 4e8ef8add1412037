-- Deposits and deductions of many at once, none of which brings loans: {id, entry, id, entry...}. If each can be done
-- in whatever order, a few commands do all; if one may not be, nothing is done, and each is asked alone.

-- The ids; none of them is recorded, and none comes twice.
local function new_ids(ids, entries)
  local asked, seen = {}, {}
  for i = 1, #entries, 2 do
    local id = entries[i]
    if seen[id] then refuse('twice') end
    seen[id], asked[#asked + 1] = true, id
  end
  for _, entry in ipairs(read('HMGET', whole(ids), unpack(asked))) do
    if entry then refuse('recorded') end
  end
  return asked
end

-- Remembers all of them: what is kept back of these parts was written.
local function record_all(segment, ids, asked, entries, last)
  send('HSET', ids.name, entries)
  send('RPUSH', whole(part(segment, 'order')), asked)
  for i, id in ipairs(asked) do ids.known[id] = entries[2 * i] end
  if last > segment.newest then set(segment, 'newest', last) end
  segment.count = segment.count + #asked
end

-- `first` and `last`: the least and the greatest time of the ids; `coming` and `going`: how much is deposited, and
-- deducted, together.
function rules.ops(segment, generation, first, last, coming, going, entries)
  certain(segment)
  known(segment, generation, last)
  remembered(segment, first)
  timely(segment, last)
  not_frozen(segment)
  acceptable(segment, last, coming == 0 and 'deduct' or 'deposit')
  has_room(segment, #entries / 2)
  must_fit(segment, coming)
  local ids = part(segment, 'ids')
  local asked = new_ids(ids, entries)
  expire_due(segment)
  if less(segment.value, going) then refuse('each') end
  set_value(segment, subtract(add(segment.value, coming), going))
  set(segment, 'version', segment.version + #asked - 1)
  record_all(segment, ids, asked, entries, last)
  return 'D'
end
