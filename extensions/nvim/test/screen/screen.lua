-- The plugin on a real screen: a terminal of tmux's, keys from a keyboard.
local check = require('check')

local workspace = check.need('STORY_WORKSPACE')
local outside = check.need('STORY_OUTSIDE')
local runtime = check.need('XDG_RUNTIME_DIR')
local socket = runtime .. '/tmux'

local function tmux(...)
  local done = vim.system({ 'tmux', '-S', socket, '-f', '/dev/null', ... }, { text = true }):wait(10000)
  assert(done.code == 0, table.concat({ ... }, ' ') .. ': ' .. done.stderr)
  return done.stdout
end

local function screen()
  return tmux('capture-pane', '-p')
end

-- shows waits until the screen holds part, and returns all of it.
local function shows(part)
  local got
  local ok = vim.wait(20000, function()
    got = screen()
    return got:find(part, 1, true) ~= nil
  end, 50)
  if not ok then
    error(('waited until the screen shows %q; it shows:\n%s'):format(part, got), 2)
  end
  return got
end

local function gone(part)
  check.until_true(('%q is gone'):format(part), function()
    return not screen():find(part, 1, true)
  end)
end

local function keys(...)
  tmux('send-keys', ...)
end

-- with starts Neovim on a screen of columns and lines.
local function with(columns, lines, program, fn)
  local init = vim.fn.tempname() .. '.lua'
  vim.fn.writefile(
    vim.split(
      ([[
    vim.opt.runtimepath:prepend(%q)
    vim.cmd.runtime('plugin/confine.lua')
    vim.o.swapfile = false
    require('confine').setup({ cmd = %q })
    vim.o.statusline = "%%f %%= %%{%%v:lua.require'confine'.statusline()%%}"
    vim.o.laststatus = 2
  ]]):format(check.plugin, program),
      '\n'
    ),
    init
  )
  tmux('new-session', '-d', '-x', tostring(columns), '-y', tostring(lines), '-c', workspace, vim.v.progpath, '--clean', '-u', init)
  local ok, problem = xpcall(fn, debug.traceback)
  vim.system({ 'tmux', '-S', socket, 'kill-server' }):wait(10000)
  vim.fn.delete(socket)
  vim.fn.delete(init)
  if not ok then
    error(problem, 0)
  end
end

local function test(title, columns, lines, fn, program)
  check.test(title, function()
    with(columns, lines, program or check.need('CONFINE_BIN'), function()
      shows('[No Name]')
      fn()
    end)
  end)
end

-- refused runs a command that the sandbox refuses.
local function refused(command)
  keys(':Confine run ' .. command, 'Enter')
  shows('sandbox refused')
end

local file = outside .. '/screen'

test('asked, typed ahead, allowed', 100, 30, function()
  refused('echo wide > ' .. file)
  keys(':Confine escalate', 'Enter', 'Y', 'Y') -- the two are typed before anything is shown
  local text = shows('Y once')
  check.has(text, 'confine · question')
  check.has(text, 'echo wide > ' .. file)
  check.has(text, 'Y: Allow this once')
  check.has(text, '1 question')
  check.eq(check.exists(file), false, 'it ran before the answer')
  keys('Y')
  shows('[ok,')
  check.eq(check.read(file), 'wide\n')
  gone('confine · question')
  os.remove(file)
end)

test('refused by Enter, and by Escape', 100, 30, function()
  for _, key in ipairs({ 'Enter', 'Escape' }) do
    refused(('echo %s > %s'):format(key, file)) -- a refusal is remembered, so each is another command
    keys(':Confine escalate', 'Enter')
    shows('Y once')
    keys(key)
    shows('[refused')
    gone('confine · question')
    keys(':only', 'Enter')
    gone('[refused')
  end
  check.eq(check.exists(file), false, 'it was written')
end)

test('withdrawn when nobody answers', 100, 30, function()
  refused('echo wide > ' .. file)
  keys(':Confine escalate', 'Enter')
  shows('confine · question')
  gone('confine · question')
  shows('timed-out')
  check.eq(check.exists(file), false, 'it was written')
end, check.need('CONFINE_HASTY_BIN'))

test('while somebody writes, the text goes where it belongs', 100, 30, function()
  refused('echo wide > ' .. file)
  keys(':only', 'Enter')
  keys(":lua vim.defer_fn(function() vim.cmd('Confine escalate') end, 300)", 'Enter', 'i')
  shows('-- INSERT --')
  shows('leave what you type')
  keys('Yes, my text')
  shows('Yes, my text')
  check.eq(check.exists(file), false, 'it was written')
  keys('Escape')
  shows('Y once')
  keys('n')
  shows('[refused')
end)

test('on a narrow screen a long command is read to its end', 60, 15, function()
  local long = ''
  for i = 1, 60 do
    long = long .. ('echo line %d; '):format(i)
  end
  refused(long .. 'echo wide > ' .. file)
  keys(':Confine escalate', 'Enter')
  local text = shows('more rows')
  for _, line in ipairs(vim.split(text, '\n')) do
    assert(vim.fn.strdisplaywidth(line) <= 60, line)
  end
  keys('Y')
  keys('C-d')
  check.eq(check.exists(file), false, 'it ran before it was read')
  keys('G')
  text = shows('Y once')
  check.has(text, 'S: Allow for this session')
  tmux('resize-window', '-x', '100', '-y', '30') -- drawn anew, from its beginning
  text = shows('echo line 1; echo line 2;')
  check.has(text, 'confine · question')
  shows('n refuse')
  keys('n')
  gone('confine · question')
  check.eq(check.exists(file), false, 'it was written')
end)
