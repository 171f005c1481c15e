local check = require('check')
local tool = require('confine.tool')

local described = {
  arguments = {
    { name = 'command', field = 'command' },
    { name = 'description' },
    { name = 'workdir', field = 'cwd' },
    { name = 'timeoutMs', field = 'timeoutMs' },
    { name = 'run_in_background', field = 'background' },
    { name = 'sandbox_permissions', field = 'sandboxPermissions' },
    { name = 'justification', field = 'justification' },
    { name = 'later', field = 'notKnownYet' },
  },
}

check.test('arguments become options', function()
  check.eq(tool.options(described, { command = 'ls', description = 'lists', workdir = '/x', timeoutMs = 5, run_in_background = true, sandbox_permissions = 'workspace-write', justification = 'why' }), {
    command = 'ls',
    options = { cwd = '/x', timeout_ms = 5, background = true, permissions = 'workspace-write', justification = 'why' },
  })
  check.eq(tool.options(described, { command = 'ls', workdir = vim.NIL }), { command = 'ls', options = {} })
end)

check.test('what a model gets wrong is told, and nothing runs', function()
  check.has(tool.options(described, { command = 'ls', root = '/' }), 'no argument "root"')
  check.has(tool.options(described, { command = 'ls', cwd = '/' }), 'no argument "cwd"')
  check.has(tool.options(described, { command = 'ls', later = 1 }), 'does not know')
  check.has(tool.options(described, {}), '"command" must be a text')
  check.has(tool.options(described, { command = { 'ls' } }), '"command" must be a text')
  check.has(tool.options(described, 'ls'), 'must be an object')
end)
