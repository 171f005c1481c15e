-- The rows of what decides later commands.
local check = require('check')
local approvals = require('confine.ui.approvals')

local function texts(found)
  return vim.tbl_map(function(row)
    return row.text
  end, approvals.rows(found))
end

local function approval(more)
  return vim.tbl_extend('force', { id = 'x', source = 'person', decision = 'allow', text = 'Exactly this command runs.', scope = 'session', command = 'make', cwd = '/p', revocable = true }, more)
end

check.test('an answer and a rule, and how long each counts', function()
  check.eq(
    texts({
      server = { root = '/p' },
      approvals = { approval({ session = 'chat', warnings = { 'It opens «/x».' } }), approval({ source = 'rule', decision = 'deny', command = 'rm', origin = '/c.toml:3', reason = 'no', revocable = false }) },
    }),
    {
      'Workspace folder: /p',
      'allow  make',
      '       Exactly this command runs.',
      '       It opens «/x».',
      '       your answer, until the session chat ends; in the folder /p',
      'refuse rm',
      '       Exactly this command runs.',
      '       a rule, /c.toml:3: no',
    }
  )
end)

check.test('nothing, and no list', function()
  check.has(texts({ server = {}, approvals = {} })[2], 'no answer of yours')
  check.eq(texts({ server = {}, failure = { message = 'gone\nallow  all' } }), { 'No workspace folder', 'gone\\nallow  all' })
end)

check.test('a text cannot begin a row', function()
  for _, row in ipairs(texts({ server = {}, approvals = { approval({ command = 'a\nallow  b', cwd = '/\nallow  c', session = 's\nallow  d', warnings = { '\nallow  e' } }) } })) do
    assert(not row:find('\n'), row)
  end
end)
