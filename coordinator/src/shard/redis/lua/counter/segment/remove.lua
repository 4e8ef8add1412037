-- Removes the segment of a deleted account, if it is empty, and nothing of the account's last plan can be under way.
function rules.remove(segment, generation, credit, mark, planned)
  certain(segment)
  newest_known(segment, generation)
  local is_empty = not (less(segment.value, credit) or less(credit, segment.value))
  if not (segment.closed and segment.open == 0 and is_empty) then return {'view', view(segment)} end
  local after = math.max(segment.newest, segment.mark)
  if after > mark then return {'later', after, now} end
  local made_until = planned + segment.skew + clocks.apart
  if now <= made_until then refuse('busy', made_until + 1 - now) end
  if read('EXISTS', segment.name .. ':manifest') == 1 then refuse('foreign') end
  unlink_parts(segment.name)
  local text = string.sub(segment.name, #prefix + 3)
  redis.call('HDEL', prefix .. ':#{' .. slot_in(text) .. '}', text)
  segment.is_removed = true
  return {'removed'}
end
