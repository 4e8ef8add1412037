-- Raises the fence to incarnation n. Returns the fence if n is below it: nothing may be done then.
local function below_fence(key, n)
  local fence = redis.call('GET', key)
  if fence and n < fence then return fence end
  if fence ~= n then redis.call('SET', key, n) end
end
