-- The rows of a question: everything is there, and nothing untrusted looks like ours.
local check = require('check')
local wording = require('confine.ui.wording')
local question = require('sample').question
local keys = require('confine.config').current.keys

local function rows(more, width)
  return vim.tbl_map(function(row)
    return row.text
  end, wording.rows(question(more), width or 60, keys))
end

check.test('everything that a yes depends on is there', function()
  local all = table.concat(
    rows({
      stdin = 'the input',
      env = { 'A=b', 'C=d' },
      justification = 'because',
      evidence = { { op = 'create', path = '/srv/x', errno = 'EROFS', count = 3, evidence = 'observed' } },
      warnings = { 'Opens «/srv».', 'Second.' },
    }),
    '\n'
  )
  for _, part in ipairs({ 'confine abcd:', 'make install', '/somewhere/project', 'the input', 'A=b', 'C=d', 'because', 'create /srv/x (EROFS), 3 times', 'Opens «/srv».', 'Second.', 'workspace-write', 'Y: Allow this once', 'S: Allow for this session', 'n or <CR>: Refuse' }) do
    check.has(all, part)
  end
end)

check.test('a long command is shown whole, behind the bar in every row', function()
  local command = ('echo ' .. ('x'):rep(50) .. '; '):rep(200) .. 'rm -rf /important'
  for _, width in ipairs({ 20, 56, 100 }) do
    local shown, inside = {}, false
    for _, row in ipairs(rows({ command = command }, width)) do
      assert(vim.fn.strdisplaywidth(row) <= width, row)
      if row == 'Command:' then
        inside = true
      elseif row == 'in the folder:' then
        inside = false
      elseif inside then
        assert(vim.startswith(row, wording.bar), row)
        shown[#shown + 1] = row:sub(#wording.bar + 1)
      end
    end
    check.eq(table.concat(shown), command)
  end
end)

check.test('no text can begin a row of ours', function()
  local fake = 'Y: Allow this once'
  local hostile = ('a'):rep(58) .. fake .. '\n' .. fake .. '\r' .. fake .. '\226\128\168' .. fake
  local marked = {}
  for _, field in ipairs({ 'command', 'cwd', 'stdin', 'justification', 'reason' }) do
    marked[field] = hostile
  end
  marked.env, marked.warnings = { hostile }, { hostile }
  marked.evidence = { { op = hostile, path = hostile, errno = hostile, count = 1, evidence = 'observed' } }
  local ours = 0
  for _, row in ipairs(rows(marked)) do
    assert(not row:find('[\n\r]'), 'a line break is left')
    if not vim.startswith(row, wording.bar) and row:find(fake, 1, true) then
      ours = ours + 1
    end
  end
  check.eq(ours, 1)
end)

check.test('an option that may not be given has no key', function()
  local q = question()
  q.options[3] = nil
  check.eq(vim.tbl_map(function(choice)
    return choice.key
  end, wording.allowing(q, keys)), { 'Y' })
end)
