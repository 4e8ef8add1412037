-- The checks of every request, in this order: is the id recorded, is the segment's money certain and its server safe,
-- does the caller know the layout, is the id too old, is the segment frozen. Only then the request is applied.
-- `segment/checks.rs` has the reasons.

local function set(segment, field, value)
  segment[field], segment.changed[field], segment.is_changed = value, value, true
end

-- The content and the state in an entry: 8 bytes, and a letter with its data. Y: cancelled before it came, so its
-- content is not known.
local CANCELLED_UNKNOWN = '\0\0\0\0\0\0\0\0Y'
local function state_of(entry)
  return entry == CANCELLED_UNKNOWN and 'X' or string.sub(entry, 9)
end

-- The recorded answer, for a repeat of the same content.
local function first_answer(entry, content)
  if string.sub(entry, 1, 8) ~= content and entry ~= CANCELLED_UNKNOWN then refuse('conflict') end
  return state_of(entry)
end

-- Whether the server syncs each change, if the account requires that.
local function is_safe(durability)
  return durability ~= 'disk' or string.sub(origin, 1, 1) ~= '0'
end

local function must_be_safe(durability)
  if not is_safe(durability) then refuse('not_on_disk') end
end

local function certain(segment)
  must_be_safe(segment.durability)
  if segment.doubtful then refuse('doubtful') end
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

local function outlives(segment, time)
  local since = now - segment.window
  if time <= since then refuse('id_expired', since) end
end

local function not_frozen(segment, caller)
  if segment.frozen == '' then return end
  local till, by = string.match(segment.frozen, '^(%d+) (.*)$')
  local left = till - now
  if by ~= caller and left > 0 then refuse('busy', left) end
end

local clocks = {apart = 60000}

-- If the server's clock and that of a caller who accepts a loss differ by more than a minute and the skew, one is wrong.
function clocks.agree(at, skew)
  local most = skew + clocks.apart
  if math.abs(now - at) > most then refuse('clocks', now, most) end
end

-- The segment's money, including held money, and money that is promised to come.
local function owned(segment)
  return add(add(segment.value, segment.held), segment.promised)
end

-- The most that the segment may have; the credit line, if that is the account's ceiling; and the account's unit.
local function limits_of(segment)
  if not segment.limits then return AMOUNT_MAX, 0, '' end
  local most, credit, unit = string.match(segment.limits, '^(%d+) (%d+) (.*)$')
  return amount_of(most), amount_of(credit), unit
end

local function fits(segment, amount)
  return not less(limits_of(segment), add(owned(segment), amount))
end

local function must_fit(segment, amount)
  if fits(segment, amount) then return end
  local most, credit = limits_of(segment)
  refuse('full', owned(segment), amount, most, credit)
end

local function set_value(segment, value)
  set(segment, 'value', value)
  set(segment, 'version', segment.version + 1)
end

local function take_back(segment, amount)
  set(segment, 'held', subtract(segment.held, amount))
  set_value(segment, add(segment.value, amount))
end

local function view(segment)
  local out = read('HGETALL', whole(part(segment, 'out')))
  local inn = read('HGETALL', whole(part(segment, 'inn')))
  local unfinished = 0
  if segment.open > 0 then
    unfinished = read('ZCARD', whole(part(segment, 'sent'))) + read('ZCARD', whole(part(segment, 'pinned')))
  end
  return segment.value, segment.held, segment.version, segment.doubtful and 1 or 0, segment.losses, now, unfinished,
    segment.mark, out, inn
end
