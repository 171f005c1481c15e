-- Servers that misbehave, and what becomes of those who wait.
local check = require('check')
local child = require('child')

local workspace = check.need('STORY_WORKSPACE')
local fake = vim.inspect({ vim.v.progpath, '--clean', '--headless', '-l', check.plugin .. '/test/fake.lua' }):gsub('\n', ' ')

local function test(title, fn, options)
  check.test(title, function()
    child.with(workspace, options or ('{ cmd = %s }'):format(fake), fn)
  end)
end

test('a server that ends is started again, and who waited is told', function(c)
  c:lua("require('confine.server').delays = { 10, 10, 10 }")
  c:run('first', 'exit(3)')
  local failure = c:failure('first')
  check.eq(failure.kind, 'unavailable')
  check.has(failure.message, 'exit status 3')
  c:run('second', 'reply({ modelText = "again" })') -- waits until it is there
  check.eq(c:result('second').modelText, 'again')
  check.has(table.concat(c:lua('return _G.told'), '\n'), 'started again')
end)

test('one that ends again and again is given up, until the person says so', function(c)
  c:lua("require('confine.server').delays = { 10, 10, 10 }")
  for i = 1, 4 do
    c:run('end' .. i, 'exit(3)')
    check.eq(c:failure('end' .. i).kind, 'unavailable')
  end
  c:run('none', 'reply()')
  check.has(c:failure('none').message, '4 times in a row')
  check.has(table.concat(c:lua('return _G.told'), '\n'), ':Confine restart')
  c:lua("vim.cmd('Confine restart')")
  c:run('after', 'reply()')
  check.eq(c:result('after').status, 'completed')
end)

test('a program that is none', function(c)
  c:run('a', 'true')
  check.has(c:failure('a').message, "'/nowhere/confine', which is set as cmd in setup(), is no program")
end, "{ cmd = '/nowhere/confine' }")

test('what was wrong with the options is mended by new ones', function(c)
  c:run('a', 'true')
  c:failure('a')
  c:lua("require('confine').setup(" .. ('{ cmd = %s }'):format(fake) .. ')')
  c:run('b', 'reply()')
  check.eq(c:result('b').status, 'completed')
end, "{ cmd = '/nowhere/confine' }")

test('a program that is something else', function(c)
  c:run('a', 'true')
  check.has(c:failure('a').message, 'is not confine')
end, "{ cmd = 'true' }")

test('a program that is too old', function(c)
  c:lua("vim.env.FAKE_PROTOCOL = '0'")
  c:run('a', 'true')
  check.has(c:failure('a').message, 'too old')
end)

test('one that ends before it begins', function(c)
  c:lua("require('confine.server').delays = { 10 } vim.env.FAKE_START = 'exit'")
  c:run('a', 'true')
  check.has(c:failure('a').message, 'exit status 5')
end)

test('one that never answers', function(c)
  c:lua("require('confine.server').patience = 300")
  c:run('a', 'true')
  check.has(c:failure('a').message, 'did not answer')
end, vim.inspect({ cmd = { 'sh', '-c', [[if [ "$1" = version ]; then echo '{"protocolVersion":1,"version":"x"}'; else exec cat >/dev/null; fi]], 'sh' } }):gsub('\n', ' '))

test('a request can be cancelled before there is a server', function(c)
  c:lua([[
    local handle = require('confine').run('reply()', {}, function(failure) _G.done.early = { failure = failure } end)
    handle.cancel()
    handle.cancel()
  ]])
  check.eq(c:failure('early').kind, 'cancelled')
end)

test('a cancelled request is answered with a result', function(c)
  c:lua([[
    _G.handle = require('confine').run('_G.nothing = 1', {}, function(failure, result) _G.done.later = { failure = failure, result = result } end)
  ]])
  c:wait_for("require('confine.client').here().state == 'ready'")
  c:lua('_G.handle.cancel()')
  check.eq(c:result('later').status, 'cancelled')
end)

test('Neovim ends while a question waits and a command runs', function(c)
  c:run('asked', 'ask(' .. vim.inspect(require('sample').question()) .. ')')
  c:question()
  c:run('going', '_G.nothing = 1')
end)

test('the status line says what is true now', function(c)
  local function says(part)
    c:wait_for(("require('confine').statusline():find(%q, 1, true)"):format(part), 'the status line says ' .. part)
  end
  c:lua("vim.env.FAKE_MODE = 'read-only' require('confine.server').delays = { 1e6 }")
  check.eq(c:lua("return require('confine').statusline()"), '')
  c:run('a', 'reply()')
  says('read-only · cannot run')
  c:run('b', "reply() change_mode('workspace-write')")
  says('workspace-write · cannot run')
  c:run('c', 'exit(1)')
  c:failure('c')
  says('waiting')
  check.eq(c:lua("return require('confine').statusline():find('write') == nil"), true, 'nothing is said of a server that is gone')
end)

-- health is what :checkhealth says.
local function health(c)
  c:lua("vim.cmd('checkhealth confine')")
  return table.concat(c:lua('return vim.api.nvim_buf_get_lines(0, 0, -1, false)'), '\n')
end

test('checkhealth: nothing can be confined', function(c)
  c:lua("vim.env.FAKE_MODE = 'read-only'")
  local text = health(c)
  check.has(text, 'ERROR no provider can be used: install bubblewrap')
  check.has(text, 'provider landlock cannot be used: the kernel has none')
  check.has_not(text, 'commands run in mode')
end)

test('checkhealth: a server that does not begin', function(c)
  c:lua("require('confine.server').delays = {} vim.env.FAKE_START = 'exit'")
  check.has(health(c), 'exit status 5')
end)

test('checkhealth: a program that is too old', function(c)
  c:lua("vim.env.FAKE_PROTOCOL = '0'")
  check.has(health(c), 'too old: it speaks version 0 of the protocol, and 1 is needed')
end)

test('checkhealth: no program, and where to get it', function(c)
  c:lua("vim.env.PATH = '/nowhere'")
  local text = health(c)
  check.has(text, 'ERROR the program confine is not on PATH')
  check.has(text, 'keep it outside your projects')
end, '{}')
