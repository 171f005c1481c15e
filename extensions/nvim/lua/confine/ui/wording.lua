--- The rows of the question window. Untrusted text is always behind a bar, so
--- that no text can look like a row of ours, however it falls into lines.
local M = {}

local text = require('confine.text')
local questions = require('confine.questions')

---@class confine.Row
---@field text string
---@field group string? highlight group

--- What stands before each row of a text that is not ours.
M.bar = '┃ '

---@param path string
local function denial(d)
  local what = d.path or d.address or ''
  local row = ('%s %s'):format(d.op or '?', what)
  if d.errno then
    row = row .. (' (%s)'):format(d.errno)
  end
  if (d.count or 1) > 1 then
    row = row .. (', %d times'):format(d.count)
  end
  return row
end

--- What a key does, for each option that can be chosen by one.
---@param question confine.Question
---@param keys confine.Keys
---@return { key: string, option: confine.Option, label: string }[]
function M.allowing(question, keys)
  local found = {}
  for _, choice in ipairs({
    { key = keys.allow_once, kind = 'allow_once', label = 'once' },
    { key = keys.allow_session, kind = 'allow_always', label = 'session' },
  }) do
    local option = questions.option(question, choice.kind)
    if option then
      found[#found + 1] = { key = choice.key, option = option, label = choice.label }
    end
  end
  return found
end

--- When an RFC 3339 time of UTC is on the person's clock, or nil.
---@param time string?
---@return string?
local function clock(time)
  local year, month, day, hour, min, sec = tostring(time):match('^(%d+)-(%d+)-(%d+)T(%d+):(%d+):(%d+)Z$')
  if not year then
    return nil
  end
  local as_local = os.time({ year = year, month = month, day = day, hour = hour, min = min, sec = sec, isdst = false })
  local now = os.time()
  local offset = os.time(os.date('*t', now) --[[@as osdateparam]]) - os.time(os.date('!*t', now) --[[@as osdateparam]])
  return os.date('%H:%M:%S', as_local + offset) --[[@as string]]
end

--- All of a question, in rows that fit into width cells.
---@param question confine.Question
---@param width integer
---@param keys confine.Keys
---@return confine.Row[]
function M.rows(question, width, keys)
  local rows = {} ---@type confine.Row[]
  local function add(line, group)
    rows[#rows + 1] = { text = line, group = group }
  end
  local function ours(line, group)
    for _, row in ipairs(text.prose(text.visible(line), width)) do
      add(row, group)
    end
  end
  local function label(line)
    ours(line, 'ConfineLabel')
  end
  local function behind_bar(line, group)
    for _, row in ipairs(text.rows(line, width - vim.fn.strdisplaywidth(M.bar))) do
      add(M.bar .. row, group)
    end
  end
  local function theirs(line, group)
    behind_bar(text.visible(line), group)
  end

  ours(question.title, 'ConfineTitle')
  -- Warnings are sentences of the server's that quote untrusted texts.
  for _, warning in ipairs(question.warnings) do
    theirs(warning, 'ConfineWarning')
  end
  label('Command:')
  theirs(question.command, 'ConfineCommand')
  label('in the folder:')
  theirs(question.cwd, 'ConfineCommand')
  if question.stdin and question.stdin ~= '' then
    label('with this input:')
    theirs(question.stdin, 'ConfineCommand')
  end
  if question.env and #question.env > 0 then
    label('with these variables:')
    for _, variable in ipairs(question.env) do
      theirs(variable, 'ConfineCommand')
    end
  end
  if question.justification and question.justification ~= '' then
    label('Whoever asks says (not to be trusted):')
    behind_bar(text.readable(question.justification))
  end
  if question.evidence and #question.evidence > 0 then
    label('What the sandbox refused before:')
    for _, refused in ipairs(question.evidence) do
      theirs(denial(refused))
    end
  end
  if question.reason ~= '' then
    label('Asked because:')
    behind_bar(text.readable(question.reason))
  end
  label(('In force without a yes: %s'):format(question.mode))
  for _, choice in ipairs(M.allowing(question, keys)) do
    ours(('%s: %s'):format(choice.key, choice.option.name), 'ConfineKey')
  end
  ours(('%s: Refuse'):format(table.concat(keys.refuse, ' or ')), 'ConfineKey')
  ours(('%s: Close, and allow nothing'):format(table.concat(keys.dismiss, ' or ')), 'ConfineKey')
  local ends = clock(question.expiresAt)
  ours(ends and ('No answer until %s refuses.'):format(ends) or 'No answer refuses.', 'ConfineHint')
  return rows
end

return M
