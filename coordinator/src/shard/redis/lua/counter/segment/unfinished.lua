-- Lists unfinished transfers.

-- The members of a part after `after`; false: from the first.
local function page_of(sorted, after)
  local PAGE_LEN_MAX = 100
  return read('ZRANGEBYLEX', whole(sorted), after and '(' .. after or '-', '+', 'LIMIT', 0, PAGE_LEN_MAX)
end

function rules.sent(segment, after)
  certain(segment)
  local answer = {'sent'}
  for _, member in ipairs(page_of(part(segment, 'sent'), after)) do
    local at, entry = #answer, get(part(segment, 'open'), string.sub(member, -KEY))
    answer[at + 1], answer[at + 2] = member, state_of(entry)
  end
  return answer
end

function rules.pinned(segment, after)
  certain(segment)
  local answer = {'pinned'}
  for _, member in ipairs(page_of(part(segment, 'pinned'), after)) do
    local at, _, promised = #answer, legs.promised_in(get(part(segment, 'open'), string.sub(member, -KEY)))
    answer[at + 1], answer[at + 2] = string.sub(member, 1, -KEY - 1), promised or ''
  end
  return answer
end
