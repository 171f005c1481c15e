--- Text for the screen: what cannot be seen is written out, and long lines are
--- cut to the window by us, so that a row says whether it is ours. Pure, but for
--- asking Neovim how wide a character is drawn.
local M = {}

--- Ranges of characters that are not drawn, that move their neighbours, or that
--- are drawn across them.
local hidden = {
  { 0x00, 0x1f },
  { 0x7f, 0x9f },
  { 0xad, 0xad },
  { 0x0334, 0x0338 },
  { 0x034f, 0x034f },
  { 0x0488, 0x0489 },
  { 0x0600, 0x0605 },
  { 0x061c, 0x061c },
  { 0x06dd, 0x06dd },
  { 0x070f, 0x070f },
  { 0x0890, 0x0891 },
  { 0x08e2, 0x08e2 },
  { 0x115f, 0x1160 },
  { 0x17b4, 0x17b5 },
  { 0x180b, 0x180f },
  { 0x1abe, 0x1abe },
  { 0x200b, 0x200f },
  { 0x2028, 0x202e },
  { 0x2060, 0x206f },
  { 0x20d2, 0x20d3 },
  { 0x20d8, 0x20da },
  { 0x20dd, 0x20e0 },
  { 0x20e2, 0x20e6 },
  { 0x20ea, 0x20eb },
  { 0x2800, 0x2800 },
  { 0x3164, 0x3164 },
  { 0xa670, 0xa672 },
  { 0xfe00, 0xfe0f },
  { 0xfeff, 0xfeff },
  { 0xffa0, 0xffa0 },
  { 0xfff0, 0xfffd },
  { 0x10a39, 0x10a39 },
  { 0x110bd, 0x110bd },
  { 0x110cd, 0x110cd },
  { 0x13430, 0x1343f },
  { 0x13441, 0x13442 },
  { 0x16af0, 0x16af4 },
  { 0x16fe4, 0x16fe4 },
  { 0x1bc9e, 0x1bc9e },
  { 0x1bca0, 0x1bca3 },
  { 0x1d159, 0x1d159 },
  { 0x1d173, 0x1d17a },
  { 0xe0000, 0xe0fff },
}

--- Ranges that belong in prose, but make a command look like another one: spaces
--- that are no space, letters that run from right to left and reorder the signs
--- between them, and what each font draws in its own way.
local misleading = {
  { 0xa0, 0xa0 },
  { 0x0590, 0x08ff },
  { 0x1680, 0x1680 },
  { 0x2000, 0x200a },
  { 0x202f, 0x202f },
  { 0x205f, 0x205f },
  { 0x3000, 0x3000 },
  { 0xe000, 0xf8ff },
  { 0xfb1d, 0xfdff },
  { 0xfe70, 0xfeff },
  { 0x10800, 0x10fff },
  { 0x1e800, 0x1efff },
  { 0xf0000, 0x10ffff },
}

local short = { ['\n'] = '\\n', ['\r'] = '\\r', ['\t'] = '\\t' }

---@param code integer
---@param ranges integer[][] in order
local function within(code, ranges)
  local first, last = 1, #ranges
  while first < last do -- the first range that does not end before code
    local middle = math.floor((first + last) / 2)
    if code > ranges[middle][2] then
      first = middle + 1
    else
      last = middle
    end
  end
  return code >= ranges[first][1] and code <= ranges[first][2]
end

--- One valid character of text at i: its length in bytes and code, or nil.
---@param text string
---@param i integer
---@return integer? length, integer? code
local function character(text, i)
  local lead = text:byte(i)
  local length = lead < 0x80 and 1 or lead >= 0xf0 and 4 or lead >= 0xe0 and 3 or 2
  if lead >= 0x80 and (lead < 0xc2 or lead > 0xf4) then
    return nil
  end
  local code = length == 1 and lead or lead % 2 ^ (7 - length)
  for k = i + 1, i + length - 1 do
    local byte = text:byte(k)
    if not byte or byte < 0x80 or byte > 0xbf then
      return nil
    end
    code = code * 64 + byte % 64
  end
  if code < ({ 0, 0x80, 0x800, 0x10000 })[length] or (code >= 0xd800 and code <= 0xdfff) or code > 0x10ffff then
    return nil
  end
  return length, code
end

--- Whether text is UTF-8.
---@param text string
---@return boolean
function M.is_text(text)
  local i = text:find('[\128-\255]')
  while i do
    local length = character(text, i)
    if not length then
      return false
    end
    i = text:find('[\128-\255]', i + length)
  end
  return true
end

---@param text string
---@param strange fun(code: integer): boolean whether it is written out
---@return string
local function written_out(text, strange)
  if not text:find('[^\32-\126]') then
    return text
  end
  local out, i = {}, 1
  while i <= #text do
    local plain = text:match('^[\32-\126]+', i)
    if plain then
      out[#out + 1] = plain
      i = i + #plain
      if i > #text then
        break
      end
    end
    local length, code = character(text, i)
    if not length or not code then
      out[#out + 1] = ('\\x%02x'):format(text:byte(i))
      i = i + 1
    else
      local char = text:sub(i, i + length - 1)
      out[#out + 1] = strange(code) and (short[char] or ('\\u{%X}'):format(code)) or char
      i = i + length
    end
  end
  return table.concat(out)
end

--- text as one line in which every character can be seen for what it is: for
--- commands, paths and whatever else is acted on. The server writes out the same
--- characters, so what comes from it escaped stays as it is.
---@param text string
---@return string
function M.visible(text)
  return written_out(text, function(code)
    return within(code, hidden) or within(code, misleading)
  end)
end

--- text as one line that is only read, such as output and what somebody says: the
--- letters of every script stay letters.
---@param text string
---@return string
function M.readable(text)
  return written_out(text, function(code)
    return within(code, hidden)
  end)
end

--- A word as bash would have to be given it.
---@param word string
---@return string
function M.quoted(word)
  return "'" .. word:gsub("'", "'\\''") .. "'"
end

--- A word with a backslash before each sign that bash would take for something else.
---@param word string
---@return string
function M.escaped(word)
  return (word:gsub('[^%w%._/+~@%%:,=\128-\255-]', '\\%0'))
end

--- The beginning and the end of a text of more than most bytes, with the number of
--- those between them.
---@param text string
---@param most integer
---@return string
function M.bounded(text, most)
  if #text <= most then
    return text
  end
  local head, tail = math.floor(most / 2), #text - math.floor(most / 2) + 1
  while head > 0 and text:byte(head + 1) >= 0x80 and text:byte(head + 1) < 0xc0 do
    head = head - 1
  end
  while tail <= #text and text:byte(tail) >= 0x80 and text:byte(tail) < 0xc0 do
    tail = tail + 1
  end
  return ('%s⟨%d bytes not shown⟩%s'):format(text:sub(1, head), tail - head - 1, text:sub(tail))
end

--- The characters of a line, each with the marks on it, and how wide each is drawn.
---@param line string
---@return fun(): string?, integer?
local function characters(line)
  local chars, i = vim.fn.split(line, '\\zs'), 0
  return function()
    i = i + 1
    local char = chars[i]
    if char then
      return char, #char == 1 and char >= ' ' and char <= '~' and 1 or vim.fn.strdisplaywidth(char)
    end
  end
end

--- Cuts one line into rows of at most width cells; never fewer than one row.
---@param line string
---@param width integer cells, at least 2
---@return string[]
function M.rows(line, width)
  local rows = {}
  if not line:find('[^\32-\126]') then
    for i = 1, math.max(1, #line), width do
      rows[#rows + 1] = line:sub(i, i + width - 1)
    end
    return rows
  end
  local row, used = {}, 0
  for char, wide in characters(line) do
    if used + wide > width and used > 0 then
      rows[#rows + 1], row, used = table.concat(row), {}, 0
    end
    row[#row + 1] = char
    used = used + wide
  end
  rows[#rows + 1] = table.concat(row)
  return rows
end

--- Cuts one line of prose between words where it can.
---@param line string
---@param width integer
---@return string[]
function M.prose(line, width)
  local rows, row = {}, ''
  for word in line:gmatch('%S+') do
    local longer = row == '' and word or (row .. ' ' .. word)
    if vim.fn.strdisplaywidth(longer) <= width then
      row = longer
    else
      if row ~= '' then
        rows[#rows + 1] = row
      end
      local pieces = M.rows(word, width)
      row = table.remove(pieces)
      vim.list_extend(rows, pieces)
    end
  end
  rows[#rows + 1] = row
  return rows
end

--- The start and the end of a line that is longer than width cells.
---@param line string
---@param width integer
---@return string
function M.short(line, width)
  if vim.fn.strdisplaywidth(line) <= width then
    return line
  end
  local chars = vim.fn.split(line, '\\zs')
  local half = math.floor((width - 1) / 2)
  local head, tail, used = {}, {}, 0
  for i = 1, #chars do
    local cells = vim.fn.strdisplaywidth(chars[i])
    if used + cells > half then
      break
    end
    head[#head + 1], used = chars[i], used + cells
  end
  used = 0
  for i = #chars, 1, -1 do
    local cells = vim.fn.strdisplaywidth(chars[i])
    if used + cells > half then
      break
    end
    table.insert(tail, 1, chars[i])
    used = used + cells
  end
  return table.concat(head) .. '…' .. table.concat(tail)
end

--- Milliseconds in words.
---@param ms number
---@return string
function M.duration(ms)
  if ms < 1000 then
    return ('%d ms'):format(ms)
  elseif ms < 60000 then
    return ('%.1f s'):format(ms / 1000)
  end
  return ('%d min %d s'):format(math.floor(ms / 60000), math.floor(ms / 1000) % 60)
end

return M
