-- The segment's records of requests, and how it forgets them.
--
-- An id is stored by its key: six bytes of its time, big-endian, and twelve of its name's digest. An answer that is not
-- final is in `open`. A final one is a record of 27 bytes: the key, eight bytes of the content's digest, the state's
-- letter. The newest records are in the hash `ids`, and in the list `order`, in which the records of one batch are one
-- element, a chunk. When there are many, the oldest go into blocks: SHA-1 of the records -> records. Blocks share no
-- range of keys: a key is in the first block whose greatest key is not less, as `times` has them by score. A block with
-- the same name elsewhere has the same content.
local KEY, RECORD, CHUNK_HEAD = 18, 27, 12
-- About this many records are in a block; a block of twice as many is split.
local BLOCK = 2048
-- Old answers that a new request drops besides its own work.
local PURGED_PER_REQUEST_MAX = 2

local function time_at(text, at)
  local a, b, c, d, e, f = string.byte(text, at, at + 5)
  return ((((a * 256 + b) * 256 + c) * 256 + d) * 256 + e) * 256 + f
end

local function time_bytes(time)
  local low = time % 16777216
  local high = (time - low) / 16777216
  return string.char(math.floor(high / 65536), math.floor(high / 256) % 256, high % 256,
    math.floor(low / 65536), math.floor(low / 256) % 256, low % 256)
end

-- The rank of a key among all keys, as an exact number: its time, and 11 bits of the digest.
local RANKS_PER_MS = 2048
local function rank_at(text, at)
  local first, second = string.byte(text, at + 6, at + 7)
  return time_at(text, at) * RANKS_PER_MS + first * 8 + math.floor(second / 32)
end

local function blocks_of(segment)
  return segment.name .. ':blocks', segment.name .. ':times'
end

-- The name of the block for keys of that rank, and its records.
local function block_at(segment, rank)
  local blocks, times = blocks_of(segment)
  local block = read('ZRANGEBYSCORE', times, string.format('%d', rank), '+inf', 'LIMIT', 0, 1)[1]
  if block and not segment.blocks_read[block] then
    segment.blocks_read[block] = read('HGET', blocks, block)
  end
  return block, segment.blocks_read[block]
end

local function packed_entry(segment, key)
  local rank = rank_at(key, 1)
  if rank > segment.packed then return false end
  local _, records = block_at(segment, rank)
  if not records then return false end
  -- Compares the digest alone: the times of all begin alike.
  local digest, at = string.sub(key, 7), 1
  while true do
    at = string.find(records, digest, at, true)
    if not at then return false end
    if at % RECORD == 7 and string.sub(records, at - 6, at - 1) == string.sub(key, 1, 6) then
      return string.sub(records, at + KEY - 6, at + RECORD - 7)
    end
    at = at + 1
  end
end

-- The entry of an id; false if there is none.
local function entry_of(segment, key)
  local entry = segment.open > 0 and get(part(segment, 'open'), key)
  return entry or get(part(segment, 'ids'), key) or packed_entry(segment, key)
end

-- The same. In doubt only an entry with a final state: the end of any other may be lost.
local function recorded(segment, key)
  local entry = entry_of(segment, key)
  if entry and segment.doubtful and string.find(entry, '^[HSK]', 9) then refuse('doubtful') end
  return entry
end

-- Records that become final in this batch are written as one chunk.
local function add_records(segment, first, last, count, records)
  local chunk = segment.chunk
  if not chunk then
    chunk = {first = first, last = last}
    segment.chunk = chunk
  end
  if first < chunk.first then chunk.first = first end
  if last > chunk.last then chunk.last = last end
  chunk[#chunk + 1] = records
  if segment.newest_count + segment.packed_count == 0 then set(segment, 'oldest', time_at(records, 1)) end
  set(segment, 'newest_count', segment.newest_count + count)
end

local function write_chunk(segment)
  local chunk = segment.chunk
  if not chunk then return end
  segment.chunk = nil
  redis.call('RPUSH', segment.name .. ':order', time_bytes(chunk.first) .. time_bytes(chunk.last) .. table.concat(chunk))
end

-- Records a final answer.
local function record_final(segment, key, entry)
  local time = time_at(key, 1)
  put(part(segment, 'ids'), key, entry)
  add_records(segment, time, time, 1, key .. entry)
end

-- Checks that an answer can become final, with its effect.
local function meet_final(segment)
  log.meet(segment)
  meet(part(segment, 'ids'))
  meet(part(segment, 'order'))
end

local function record_open(segment, key, entry)
  put(part(segment, 'open'), key, entry)
  set(segment, 'open', segment.open + 1)
end

-- Records the answer to a new id; `is_open`: it is not final.
local function record(segment, key, time, entry, is_open)
  if time > segment.newest then set(segment, 'newest', time) end
  if is_open then record_open(segment, key, entry) else record_final(segment, key, entry) end
end

local function close_open(segment, key, state)
  local open = part(segment, 'open')
  local entry = get(open, key)
  put(open, key, false)
  set(segment, 'open', segment.open - 1)
  record_final(segment, key, string.sub(entry, 1, 8) .. state)
end

-- Splits one block into two, between different ranks.
local function write_split(segment, last, records)
  local sorted = {}
  for at = 1, #records, RECORD do
    sorted[#sorted + 1] = {rank_at(records, at), string.sub(records, at, at + RECORD - 1)}
  end
  table.sort(sorted, function(one, other) return one[1] < other[1] end)
  local half = math.floor(#sorted / 2)
  while half > 1 and sorted[half][1] == sorted[half + 1][1] do half = half - 1 end
  local parts = {{}, {}}
  for i, record in ipairs(sorted) do table.insert(parts[i <= half and 1 or 2], record[2]) end
  if sorted[half][1] < sorted[half + 1][1] then
    write_block(segment, 'times', sorted[half][1], table.concat(parts[1]))
    write_block(segment, 'times', last, table.concat(parts[2]))
  else
    write_block(segment, 'times', last, records)
  end
end

-- Adds records to the block for ranks up to `last`, or makes that block.
local function add_to_block(segment, block, last, records)
  local _, times = blocks_of(segment)
  local all = segment.blocks_read[block] .. records
  last = math.max(last, tonumber(redis.call('ZSCORE', times, block)))
  drop_block(segment, 'times', block)
  if #all >= 2 * BLOCK * RECORD then
    write_split(segment, last, all)
  else
    write_block(segment, 'times', last, all)
  end
end

-- Sorts a chunk's records: into `behind` those after all packed records, up to time `cut`; into `later` those after
-- `cut`; and the others into the blocks of their ranks.
local function sort_records(segment, chunk, cut, behind, later, keys)
  local of_block, cut_rank = {}, (cut + 1) * RANKS_PER_MS
  for at = CHUNK_HEAD + 1, #chunk, RECORD do
    local rank, record = rank_at(chunk, at), string.sub(chunk, at, at + RECORD - 1)
    local some = rank >= cut_rank and later or behind
    local block = rank <= segment.packed and block_at(segment, rank)
    if block then
      some = of_block[block] or {last = rank}
      of_block[block] = some
      if rank > some.last then some.last = rank end
    end
    some[#some + 1] = record
    if some ~= later then keys[#keys + 1] = string.sub(record, 1, KEY) end
  end
  for block, some in pairs(of_block) do add_to_block(segment, block, some.last, table.concat(some)) end
end

-- Adds records after all packed ones, of ranks up to `last`, to the last block, if that has room.
local function pack_behind(segment, last, records)
  local blocks, times = blocks_of(segment)
  local block = redis.call('ZRANGE', times, -1, -1)[1]
  if block and redis.call('HSTRLEN', blocks, block) + #records <= BLOCK * RECORD then
    block_at(segment, tonumber(redis.call('ZSCORE', times, block)))
    add_to_block(segment, block, last, records)
  else
    write_block(segment, 'times', last, records)
  end
  set(segment, 'packed', last)
end

-- The number of first chunks to pack now, and the time up to which to pack: where the chunks behind them begin, so that
-- later records do not fall in between; but at least to the middle, for the case that the clocks of two processes
-- differ.
local function to_pack(chunks)
  local taken, count = 0, 0
  while taken < #chunks / 2 and count < 2 * BLOCK do
    taken = taken + 1
    count = count + (#chunks[taken] - CHUNK_HEAD) / RECORD
  end
  local cut
  for i = taken + 1, #chunks do cut = math.min(cut or math.huge, time_at(chunks[i], 1) - 1) end
  local middle = time_at(chunks[math.ceil(taken / 2)], 7)
  return taken, math.max(cut or middle, middle)
end

-- Packs the oldest of the newest records.
local function pack(segment)
  -- Most chunks that are read.
  local CHUNKS_MAX = 64
  local blocks, times = blocks_of(segment)
  read('HLEN', blocks)
  read('ZCARD', times)
  local ids, order = part(segment, 'ids'), segment.name .. ':order'
  local chunks = read('LRANGE', order, 0, CHUNKS_MAX - 1)
  local taken, cut = to_pack(chunks)
  local behind, later, keys = {}, {}, {}
  for i = 1, taken do
    local chunk = chunks[i]
    if time_at(chunk, 7) <= cut and time_at(chunk, 1) * RANKS_PER_MS > segment.packed then
      behind[#behind + 1] = string.sub(chunk, CHUNK_HEAD + 1)
      for at = CHUNK_HEAD + 1, #chunk, RECORD do keys[#keys + 1] = string.sub(chunk, at, at + KEY - 1) end
    else
      sort_records(segment, chunk, cut, behind, later, keys)
    end
  end
  if behind[1] then pack_behind(segment, (cut + 1) * RANKS_PER_MS - 1, table.concat(behind)) end
  redis.call('LTRIM', order, taken, -1)
  if later[1] then
    local last = 0
    for i = 1, taken do last = math.max(last, time_at(chunks[i], 7)) end
    redis.call('LPUSH', order, time_bytes(cut + 1) .. time_bytes(last) .. table.concat(later))
  end
  whole(meet(ids))
  send('HDEL', ids.name, keys)
  set(segment, 'newest_count', segment.newest_count - #keys)
  set(segment, 'packed_count', segment.packed_count + #keys)
end

-- The time up to which the next drop forgets: that of the first block, or of the first record.
local function look_for_oldest(segment)
  local _, times = blocks_of(segment)
  local first = false
  if segment.packed_count > 0 then
    first = math.floor(read('ZRANGE', times, 0, 0, 'WITHSCORES')[2] / RANKS_PER_MS)
  elseif segment.newest_count > 0 then
    first = time_at(read('LINDEX', segment.name .. ':order', 0), CHUNK_HEAD + 1)
  end
  set(segment, 'oldest', first)
end

-- Drops the first block.
local function forget_block(segment)
  local blocks, times = blocks_of(segment)
  local block = read('ZRANGE', times, 0, 0)[1]
  local count = read('HSTRLEN', blocks, block) / RECORD
  drop_block(segment, 'times', block)
  set(segment, 'packed_count', segment.packed_count - count)
  return count
end

-- Drops the first records up to a time, at most `most` of the first chunk. Raises the mark to the times of the dropped
-- ones.
local function forget_records(segment, until_ms, most)
  local ids, order = part(segment, 'ids'), segment.name .. ':order'
  local chunk, at, keys = read('LINDEX', order, 0), CHUNK_HEAD + 1, {}
  while at < #chunk and #keys < most and time_at(chunk, at) <= until_ms do
    keys[#keys + 1] = string.sub(chunk, at, at + KEY - 1)
    segment.mark = math.max(segment.mark, time_at(chunk, at))
    at = at + RECORD
  end
  whole(meet(ids))
  set(segment, 'mark', segment.mark)
  if at > #chunk then
    redis.call('LPOP', order)
  else
    redis.call('LSET', order, 0, string.sub(chunk, 1, CHUNK_HEAD) .. string.sub(chunk, at))
  end
  send('HDEL', ids.name, keys)
  ids.known = {}
  set(segment, 'newest_count', segment.newest_count - #keys)
  return #keys
end

-- Drops the first final answers up to a time, at most `most`, or a block. Returns their number. The mark rises to their
-- times.
local function forget_until(segment, until_ms, most)
  local dropped = 0
  while dropped < most and segment.oldest and segment.oldest <= until_ms do
    if dropped == 0 then write_chunk(segment) end
    if segment.packed_count > 0 then
      set(segment, 'mark', math.max(segment.mark, segment.oldest))
      dropped = dropped + forget_block(segment)
    else
      dropped = dropped + forget_records(segment, until_ms, most - dropped)
    end
    look_for_oldest(segment)
  end
  return dropped
end

local function remembered_count(segment)
  return segment.newest_count + segment.packed_count + segment.open
end

-- Makes room for this many new answers. Drops some older than `window`; if there is still no room, drops the oldest
-- that are older than `at_least`, and others up to the mark that this raises. The mark may be above the new ids then.
local function make_room(segment, more)
  -- This many records stay in the hash, in which reads and writes are faster than in blocks.
  local NEWEST_MAX = 8192
  meet_final(segment)
  if segment.newest_count > NEWEST_MAX then
    pack(segment)
    look_for_oldest(segment)
  end
  forget_until(segment, math.max(segment.mark, now - segment.window), PURGED_PER_REQUEST_MAX * more)
  local over = remembered_count(segment) + more - segment.ids_max
  while over > 0 and segment.oldest and segment.oldest <= now - segment.at_least do
    over = over - forget_until(segment, now - segment.at_least, 1)
    -- The next request would do the same.
    if over > 0 then over = over - forget_until(segment, segment.mark, PURGED_PER_REQUEST_MAX) end
  end
  if over > 0 then
    refuse('too_many_ids', segment.ids_max, math.max(1, (segment.oldest or now) + segment.at_least - now))
  end
end

-- Drops some old records. The mark rises to their times, and no further.
function rules.purge(segment)
  certain(segment)
  local PURGED_MAX = 256
  log.drop(segment)
  return {'purged', forget_until(segment, math.max(segment.mark, now - segment.window), PURGED_MAX)}
end
