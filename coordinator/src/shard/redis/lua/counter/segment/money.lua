-- Amounts have 64 bits, numbers here 53. An amount below 10^15 is a number; a greater one is {high, low}, which is high
-- * 10^15 + low. No amount is negative.
local amount_of, decimal, add, subtract, less
do
  local SPLIT = 1e15

  -- The amount of a decimal text.
  function amount_of(text)
    if #text <= 15 then return tonumber(text) end
    return {tonumber(string.sub(text, 1, -16)), tonumber(string.sub(text, -15))}
  end

  -- An amount as decimal text.
  function decimal(amount)
    if type(amount) == 'number' then return string.format('%d', amount) end
    return string.format('%d%015d', amount[1], amount[2])
  end

  local function split(amount)
    if type(amount) == 'number' then return 0, amount end
    return amount[1], amount[2]
  end

  local function joined(high, low)
    if high == 0 then return low end
    return {high, low}
  end

  function add(a, b)
    if type(a) == 'number' and type(b) == 'number' and a + b < SPLIT then return a + b end
    local a_high, a_low = split(a)
    local b_high, b_low = split(b)
    local low = a_low + b_low
    if low >= SPLIT then return joined(a_high + b_high + 1, low - SPLIT) end
    return joined(a_high + b_high, low)
  end

  -- a - b; b is not greater than a.
  function subtract(a, b)
    if type(a) == 'number' then return a - b end
    local b_high, b_low = split(b)
    if a[2] >= b_low then return joined(a[1] - b_high, a[2] - b_low) end
    return joined(a[1] - b_high - 1, a[2] + SPLIT - b_low)
  end

  function less(a, b)
    if type(a) == 'number' and type(b) == 'number' then return a < b end
    local a_high, a_low = split(a)
    local b_high, b_low = split(b)
    return a_high < b_high or (a_high == b_high and a_low < b_low)
  end
end

-- The most money of a segment: i64::MAX.
local AMOUNT_MAX = {9223, 372036854775807}
