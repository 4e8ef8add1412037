-- Decides a change at its home: deposit, deduct, reserve, or the start of a transfer, also of several legs.

local function acceptable(segment, time, kind, deadline, reference)
  if reference and reference ~= '' and not segment.log then refuse('no_log') end
  if kind == 'deposit' and segment.closed then refuse('closed') end
  if kind == 'reserve' and deadline > time + segment.window then refuse('deadline', time + segment.window) end
end

-- The loans of a request that may land now, if all of them fit.
local function that_fit(segment, lands, kind, amount)
  local coming, landing = kind == 'deposit' and amount or 0, {}
  for _, loan in ipairs(lands) do
    if is_new(segment, loan) then
      landing[#landing + 1] = loan
      coming = add(coming, loan[3])
    end
  end
  if coming ~= 0 then must_fit(segment, coming) end
  return landing
end

-- The part that lists a change which is not final.
local ASIDE = {reserve = 'due', transfer = 'sent', legs = 'sent'}

local function hold(segment, kind, amount, deadline, member)
  if kind == 'reserve' then
    put(part(segment, 'due'), member, deadline)
    if deadline <= now then segment.none_due = false end
  elseif ASIDE[kind] == 'sent' then
    put(part(segment, 'sent'), member, '0')
  else
    return
  end
  set(segment, 'held', add(segment.held, amount))
end

-- `state`: the recorded state on success. `text`: the id as a text, of an account
-- with a log, of a reservation and of a transfer. `reference`: '', or '~' and 16 bytes.
function rules.op(segment, id, time, generation, content, kind, amount, state, caller, lands, deadline, text, reference)
  if not segment.doubtful and is_safe(segment.durability) then expire_if_due(segment, id) end
  local entry = recorded(segment, id)
  if entry then return first_answer(entry, content) end
  certain(segment)
  known(segment, generation, time)
  timely(segment, time)
  outlives(segment, time)
  not_frozen(segment, caller)
  acceptable(segment, time, kind, deadline, reference)
  make_room(segment, 1)
  if time <= segment.mark then refuse('id_expired', segment.mark) end
  local landing = that_fit(segment, lands, kind, amount)
  local aside = ASIDE[kind]
  if aside then
    meet(part(segment, aside))
    meet(part(segment, 'open'))
  end

  expire_due(segment)
  for _, loan in ipairs(landing) do
    if is_new(segment, loan) then receive(segment, loan) end
  end
  if kind == 'deposit' then
    set_value(segment, add(segment.value, amount))
  else
    if less(segment.value, amount) then
      newest_known(segment, generation)
      return {'short', view(segment)}
    end
    set_value(segment, subtract(segment.value, amount))
  end
  hold(segment, kind, amount, deadline, text .. id)
  if kind == 'legs' then
    for _, leg in ipairs(legs.of(state)) do log.effect(segment, 'S', leg[1], text .. leg[2], reference) end
  else
    log.effect(segment, log.letters[kind], amount, text .. (string.match(state, '^S%d+:(.*)$') or ''), reference)
  end
  record(segment, id, time, content .. state, aside)
  return state
end
