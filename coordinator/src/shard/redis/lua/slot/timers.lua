-- How much is left of a timer that was set for `length` milliseconds. More than that means that the clock was set back.
local function timer_left(timer_until, length, now)
  return math.max(0, math.min(timer_until - now, length or math.huge))
end
