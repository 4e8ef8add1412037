-- What every request checks, in this order: is the id recorded, is the segment's money certain and its server safe,
-- does the caller know the layout, is the id too old, is the segment frozen; only then the work. `segment/checks.rs`
-- says why.

local function set(segment, field, value)
  segment[field], segment.changed[field], segment.is_changed = value, value, true
end

-- What became of a request, of an entry: "content state", of 16 digits and a letter with what that needs.
local function state_of(entry)
  return string.sub(entry, 17)
end

-- The first answer, for a repeat of the same content. One that was cancelled before it came has none.
local NO_CONTENT = '----------------'
local function first_answer(entry, content)
  local first = string.sub(entry, 1, 16)
  if first ~= content and first ~= NO_CONTENT then refuse('conflict') end
  return state_of(entry)
end

-- Nothing is done for an account that asks for every change to be on the disk, by a server that does not see to that.
local function must_be_safe(durability)
  if durability == 'disk' and string.sub(origin, 1, 1) == '0' then refuse('not_on_disk') end
end

local function certain(segment)
  must_be_safe(segment.durability)
  if segment.doubtful then refuse('doubtful') end
end

-- The entry of an id, if it is recorded. In doubt only one whose state is final: the end of any other may be lost.
local function recorded(segment, id)
  local entry = get(part(segment, 'ids'), id)
  if entry and segment.doubtful and string.find(entry, '^[HS]', 17) then refuse('doubtful') end
  return entry
end

local function newest_known(segment, generation)
  if generation < segment.generation then refuse('layout', segment.generation) end
end

local function known(segment, generation, time)
  local shared = generation >= segment.base and time < segment.cut
  if not shared then newest_known(segment, generation) end
end

local function remembered(segment, time)
  if time <= segment.mark then refuse('too_old', segment.mark) end
end

local function timely(segment, time)
  remembered(segment, time)
  if time - now > segment.skew then refuse('in_future', now, segment.skew) end
end

local function not_frozen(segment, caller)
  if segment.frozen == '' then return end
  local till, by = string.match(segment.frozen, '^(%d+) (.*)$')
  local left = till - now
  if by ~= caller and left > 0 then refuse('busy', left) end
end

-- The time of the first id in `order`; nothing if there is none.
local function oldest(order)
  local first = read('LINDEX', whole(order), 0)
  return first and tonumber(string.sub(first, 1, 16))
end

local function has_room(segment, more)
  local order, credit_order = part(segment, 'order'), part(segment, 'credit_order')
  if not segment.count then
    segment.count = read('LLEN', whole(order)) + read('LLEN', whole(credit_order))
  end
  if segment.count + (more or 1) <= segment.ids_max then return end
  local oldest_ms = math.min(oldest(order) or now, oldest(credit_order) or now)
  refuse('too_many_ids', segment.ids_max, math.max(1, oldest_ms + segment.window - now))
end

-- What the segment has, held money included.
local function owned(segment)
  return add(segment.value, segment.held)
end

local function fits(segment, amount)
  return not less(AMOUNT_MAX, add(owned(segment), amount))
end

local function must_fit(segment, amount)
  if not fits(segment, amount) then refuse('full', owned(segment), amount) end
end

local function set_value(segment, value)
  set(segment, 'value', value)
  set(segment, 'version', segment.version + 1)
end

local function take_back(segment, amount)
  set(segment, 'held', subtract(segment.held, amount))
  set_value(segment, add(segment.value, amount))
end

-- Remembers an answer under an id of that time: in `ids` and `order`, or in those of credits.
local function remember(segment, answers, order, id, time, entry)
  if time > segment.newest then set(segment, 'newest', time) end
  put(part(segment, answers), id, entry)
  push(part(segment, order), id)
  segment.count = segment.count + 1
end

local function record(segment, id, time, entry)
  remember(segment, 'ids', 'order', id, time, entry)
end

local function look(segment)
  local out = read('HGETALL', whole(part(segment, 'out')))
  local inn = read('HGETALL', whole(part(segment, 'inn')))
  return segment.value, segment.held, segment.version, segment.doubtful and 1 or 0, segment.losses, now, out, inn
end
