-- The log: every change of the segment's money, in the order in which it was made.
--
-- An effect is its length in two bytes, big-endian, and a text: a letter, the amount, '~' and 16 bytes if the request had
-- a reference, ':', and the id with the counterpart; of a loan, the other segment, ':', and its number. The effects of a batch are one chunk. Before them
-- stands a line: their length, the number of the first one, how many there are, their time, and the value and the held
-- money before them. The newest chunks are in the list `log`; the others in pages, which are in the hash `blocks` under
-- their SHA-1, and in `pages` by the number of their first effect. A page begins with a line: how many effects it has,
-- and the time of the last one.
--
-- A segment with a log has a field `log`: the greatest number of effects, how long they are kept, the number and the time
-- of the last one, and how many are in the list and in pages.
local log = {page = 1024, letters = {deposit = '+', deduct = '-', reserve = 'H', transfer = 'S'}}

-- The key at the end of a member of `due` or `sent`, and the id as a text before it.
function log.key_of(member)
  return string.sub(member, -18)
end

function log.id_text_of(member)
  return string.sub(member, 1, -19)
end

-- What the next effects follow.
function log.begin(segment)
  local of = segment.log
  of.effects, of.count, of.value, of.held = {}, 0, segment.value, segment.held
end

-- The log of a segment, by its field; nothing without one.
function log.open(segment, field)
  if not field then return end
  local most, keep_for, last, at, newest, packed = string.match(field, '^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+)$')
  segment.log = {most = tonumber(most), keep_for = tonumber(keep_for), last = tonumber(last), at = tonumber(at),
    newest = tonumber(newest), packed = tonumber(packed)}
  log.begin(segment)
end

-- Has the field written.
function log.note(segment)
  local of = segment.log
  segment.is_changed = true
  segment.changed.log = string.format('%d %d %d %d %d %d', of.most, of.keep_for, of.last, of.at, of.newest, of.packed)
end

-- Drops pages that are too old, or beyond the greatest number of effects; not all at once.
function log.drop_pages(segment)
  local of = segment.log
  for _ = 1, 4 do
    if of.packed == 0 then return end
    local block = read('ZRANGE', segment.name .. ':pages', 0, 0)[1]
    local count, at = string.match(read('HGET', segment.name .. ':blocks', block), '^(%d+) (%d+)\n')
    local is_over = of.newest + of.packed - count >= of.most
    if not is_over and now - at <= of.keep_for then return end
    drop_block(segment, 'pages', block)
    of.packed = of.packed - count
  end
end

-- Drops effects that are too old, not all at once.
function log.drop(segment)
  local of = segment.log
  if not of then return end
  local newest, kept = segment.name .. ':log', of.newest + of.packed
  log.drop_pages(segment)
  for _ = 1, of.packed == 0 and 64 or 0 do
    local chunk = read('LINDEX', newest, 0)
    local count, at = string.match(chunk or '', '^%d+ %d+ (%d+) (%d+)')
    if not at or now - at <= of.keep_for then break end
    redis.call('LPOP', newest)
    of.newest = of.newest - count
  end
  -- A sweep that drops nothing writes nothing.
  if of.newest + of.packed < kept then log.note(segment) end
end

-- Moves the newest effects into a page.
function log.pack(segment)
  local of, newest = segment.log, segment.name .. ':log'
  read('HLEN', segment.name .. ':blocks')
  read('ZCARD', segment.name .. ':pages')
  local chunks = read('LRANGE', newest, 0, -1)
  local first = string.match(chunks[1], '^%d+ (%d+)')
  write_block(segment, 'pages', first, string.format('%d %d\n', of.newest, of.at) .. table.concat(chunks))
  redis.call('UNLINK', newest)
  of.newest, of.packed = 0, of.packed + of.newest
  log.drop_pages(segment)
  log.note(segment)
end

-- Checks that effects can be appended.
function log.meet(segment)
  if not segment.log then return end
  local newest = part(segment, 'log')
  if newest.met then return end
  meet(newest)
  if segment.log.newest >= log.page then log.pack(segment) end
end

-- Appends effects that are made in this batch.
function log.effects(segment, count, effects)
  local of = segment.log
  if not of then return end
  of.effects[#of.effects + 1], of.count = effects, of.count + count
end

function log.effect(segment, letter, amount, text, reference)
  if not segment.log then return end
  local effect = letter .. decimal(amount) .. (reference or '') .. ':' .. text
  log.effects(segment, 1, struct.pack('>I2', #effect) .. effect)
end

-- Writes the chunk of this batch.
function log.write(segment)
  local of = segment.log
  if not of or of.count == 0 then return end
  local effects = table.concat(of.effects)
  of.at = math.max(now, of.at)
  local head = string.format('%d %d %d %d %s %s\n', #effects, of.last + 1, of.count, of.at, decimal(of.value),
    decimal(of.held))
  redis.call('RPUSH', segment.name .. ':log', head .. effects)
  of.last, of.newest = of.last + of.count, of.newest + of.count
  log.note(segment)
  log.begin(segment)
end

-- Adds to `found` the chunks of a page, or of the newest ones, that have effects after that number, not older than
-- `since`, until there are enough.
function log.find(found, chunks, at, after, since, most)
  while at <= #chunks and found.count < most do
    local length, first, count, time, behind = string.match(chunks, '^(%d+) (%d+) (%d+) (%d+) %d+ %d+\n()', at)
    local last = behind + length - 1
    local new = math.min(count, first + count - 1 - after)
    if new > 0 and tonumber(time) >= since then
      found[#found + 1] = string.sub(chunks, at, last)
      found.count = found.count + new
    end
    at = last + 1
  end
end

-- The rank of the first page that may have such effects.
function log.first_page(segment, after, since)
  local blocks, pages = segment.name .. ':blocks', segment.name .. ':pages'
  local next_one = string.format('%d', after + 1)
  local first = read('ZREVRANGEBYSCORE', pages, next_one, '-inf', 'LIMIT', 0, 1)[1]
  local low = first and read('ZRANK', pages, first) or 0
  local high = since > 0 and read('ZCARD', pages) or low
  while low < high do
    local middle = math.floor((low + high) / 2)
    local page = read('HGET', blocks, read('ZRANGE', pages, middle, middle)[1])
    local at = string.match(page, '^%d+ (%d+)\n')
    if tonumber(at) < since then low = middle + 1 else high = middle end
  end
  return low
end

-- Reads effects, doubtful or not.
function rules.history(segment, after, since, most)
  if not segment.log then refuse('no_log') end
  log.write(segment)
  local found, rank = {count = 0}, log.first_page(segment, after, since)
  repeat
    local block = read('ZRANGE', segment.name .. ':pages', rank, rank)[1]
    local page = block and read('HGET', segment.name .. ':blocks', block)
    if page then log.find(found, page, string.find(page, '\n', 1, true) + 1, after, since, most) end
    rank = rank + 1
  until not page or found.count >= most
  local newest = table.concat(read('LRANGE', segment.name .. ':log', 0, -1))
  log.find(found, newest, 1, after, since, most)
  return {'history', segment.log.last, segment.value, segment.held, table.concat(found)}
end
