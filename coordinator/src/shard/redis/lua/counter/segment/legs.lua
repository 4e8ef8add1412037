-- Money for several accounts. The state of such a decision is K, the length of the capture's id, ':', that id as a text,
-- and for each leg the amount, ':', the length of the account's name, ':', and the name.
local legs = {}

-- Where the legs begin.
function legs.at(state)
  local length, at = string.match(state, '^K(%d+):()')
  return at + length
end

-- Each {amount, account}.
function legs.of(state)
  local found, at = {}, legs.at(state)
  while at <= #state do
    local amount, length, name = string.match(state, '^(%d+):(%d+):()', at)
    at = name + length
    found[#found + 1] = {amount_of(amount), string.sub(state, name, at - 1)}
  end
  return found
end

function legs.sum(state)
  local sum = 0
  for _, leg in ipairs(legs.of(state)) do sum = add(sum, leg[1]) end
  return sum
end

function legs.same(one, other)
  return string.sub(one, legs.at(one)) == string.sub(other, legs.at(other))
end

function legs.is_capture(state)
  return string.sub(state, 1, 1) == 'K' and string.sub(state, 1, 3) ~= 'K0:'
end
