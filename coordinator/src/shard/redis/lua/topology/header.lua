-- The first line of a stored record: incarnation and version, the life it was written in, creating
-- or active, the topology's id. Nothing if the text is not a record.
local function header(record)
  return string.match(record or '', '^(%x+) (%d+) (%S+) (%l+) (%x+)\n')
end
