local check = require('check')
local config = require('confine.config')

check.test('without options the defaults hold', function()
  local c = config.resolve()
  check.eq({ c.question, c.output, c.keys.allow_once, c.keys.refuse }, { 'float', 'split', 'Y', { 'n', '<CR>' } })
  check.eq(config.resolve({}), c)
end)

check.test('given options hold, the others stay', function()
  local c = config.resolve({ cmd = { 'confine' }, keys = { allow_once = '!' } })
  check.eq({ c.cmd, c.keys.allow_once, c.keys.allow_session, c.height }, { { 'confine' }, '!', 'S', 12 })
end)

check.test('what is wrong is named', function()
  for part, options in pairs({
    ['unknown option sandbox'] = { sandbox = true },
    ['unknown option keys.yes'] = { keys = { yes = 'y' } },
    ['cmd must be a program'] = { cmd = 3 },
    ['root_markers must be a list of names'] = { root_markers = '.git' },
    ['root must be a function'] = { root = '/' },
    ["question must be one of 'float', 'select'"] = { question = 'popup' },
    ['height must be a whole number'] = { height = 2.5 },
    ['notify must be true or false'] = { notify = 'no' },
    ['settings must be a table of settings'] = { settings = { 'read-only' } },
    ['keys.allow_once must be one letter'] = { keys = { allow_once = '<CR>' } },
    ['keys.allow_session must be one letter'] = { keys = { allow_session = '' } },
    ['keys.refuse must be a list'] = { keys = { refuse = 'n' } },
    ["are both 'n'"] = { keys = { allow_once = 'n' } },
    ['are both'] = { keys = { dismiss = { '<cr>' } } },
    ['keys must be a table'] = { keys = 'Y' },
  }) do
    check.fails(part, config.resolve, options)
  end
  check.fails('must be a table', config.resolve, 'read-only')
end)

check.test('wrong options change nothing', function()
  local before = vim.deepcopy(config.current)
  pcall(config.set, { question = 'select', height = 0 })
  check.eq(config.current, before)
end)
