-- The plugin with the real server: what it runs, refuses, asks and shows.
local check = require('check')
local child = require('child')

local workspace = check.need('STORY_WORKSPACE')
local outside = check.need('STORY_OUTSIDE')
local setup = ("{ cmd = %q }"):format(check.need('CONFINE_BIN'))

local function test(title, fn, options)
  check.test(title, function()
    child.with(workspace, options or setup, fn)
  end)
end

-- buffer is the text of the window with the output of a run.
local function buffer(c, name)
  return c:lua([[
    local buf = vim.fn.bufnr('^confine://' .. ... .. '$')
    return buf == -1 and '' or table.concat(vim.api.nvim_buf_get_lines(buf, 0, -1, false), '\n')
  ]], name)
end

local function shows(c, name, part)
  check.until_true(('%s shows %q'):format(name, part), function()
    return buffer(c, name):find(part, 1, true)
  end)
  return buffer(c, name)
end

test('a command runs, and its output comes while it runs', function(c)
  vim.fn.system({ 'mkfifo', workspace .. '/fifo' })
  c:lua([[
    _G.pieces = {}
    require('confine').run('echo first; read line < fifo; echo last', { on_output = function(bytes, stream)
      table.insert(_G.pieces, stream .. ': ' .. bytes)
    end, on_exit = function(result) _G.exit = result.exitCode end }, function(failure, result) _G.done.run = { failure = failure, result = result } end)
  ]])
  c:wait_for('#_G.pieces == 1')
  check.eq(c:lua('return _G.pieces'), { 'stdout: first\n' })
  c:run('go', 'echo go > fifo')
  check.eq(c:result('run').stdout.text, 'first\nlast\n')
  check.eq(c:lua('return { _G.pieces, _G.exit }'), { { 'stdout: first\n', 'stdout: last\n' }, 0 })
  c:result('go')
  vim.fn.delete(workspace .. '/fifo')
end)

test('results, errors of the caller, and a program with arguments', function(c)
  c:run('fails', 'echo out; echo err >&2; exit 7')
  local result = c:result('fails')
  check.eq({ result.exitCode, result.stdout.text, result.stderr.text, result.sandbox.mode }, { 7, 'out\n', 'err\n', 'workspace-write' })
  check.has(result.modelText, '[exit code: 7]')
  c:run('argv', { 'printf', '%s|', 'a b', '$HOME' })
  check.eq(c:result('argv').stdout.text, 'a b|$HOME|')
  c:run('wrong', 'true', { mode = 'nonsense' })
  check.eq(c:failure('wrong').code, -32602)
  for name, request in pairs({
    command = { 'echo \255' },
    argv = { { 'echo', '\192\175' } },
    stdin = { 'cat', { stdin = 'a\226\130' } },
    env = { 'true', { env = { A = '\237\160\128' } } },
    cwd = { 'true', { cwd = '/x\255' } },
  }) do
    c:run('bytes', unpack(request)) -- the server could not even say whose request it was
    check.eq({ c:failure('bytes').kind, c:failure('bytes').message }, { 'invalid', name .. ' is not UTF-8, and nothing else can be sent' })
    c:lua('_G.done.bytes = nil')
  end
  check.eq(c:lua("return require('confine').runs()[1].state"), 'failed')
  c:run('missing', { 'no-such-program-here' })
  check.eq(c:failure('missing').data.code, 'PROGRAM_NOT_FOUND')
  for part, code in pairs({
    ['unknown option shell'] = "require('confine').run('true', { shell = 'zsh' })",
    ['cwd must be a string'] = "require('confine').run('true', { cwd = 1 })",
    ['the command must be'] = "require('confine').run('')",
    ['or a list of program and arguments'] = "require('confine').run({ 'sleep', 5 })",
  }) do
    local ok, problem = pcall(c.lua, c, code)
    check.eq(ok, false)
    check.has(problem, part)
  end
end)

test('a yes in the window opens what was asked for, and nothing else', function(c)
  local file = outside .. '/plugin-allowed'
  c:lua("vim.cmd('Confine run echo wide > ' .. ...)", file)
  local shown = shows(c, 'n1', 'the sandbox (workspace-write) refused: create ' .. file)
  check.has(shown, ':Confine escalate n1 asks for this only: write ' .. outside)
  assert(not check.exists(file), 'it was written')
  c:lua("vim.cmd('Confine escalate')")
  local question = c:armed()
  check.has(question.text, 'echo wide > ' .. file)
  check.has(question.text, outside)
  check.has(question.text, 'in workspace-write')
  assert(not check.exists(file), 'it ran before the answer')
  c:input('Y')
  shows(c, 'n2', '[ok')
  check.eq(check.read(file), 'wide\n')
  os.remove(file)
end)

test('a list shows a command as its question does', function(c)
  -- Kinds of characters: controls, spaces, what moves, joins, strikes or hides others, and plain ones.
  local codes = vim.split('1 7F 9F A0 AD 334 338 34F 488 5BE 600 627 6DD 890 8E2 115F 1680 17B4 180B 1ABE 2000 200A 200B 200E 2028 202E 202F 205F '
    .. '2060 2066 206F 20D2 20DD 20E3 20EA 2800 3000 3164 A670 E000 F8FF FB1D FDFC FE00 FE0F FE70 FEFF FFA0 FFF9 FFFC FFFD 10800 10A39 10FF0 110BD 13430 '
    .. '13441 16AF0 16FE4 1BC9E 1BCA0 1D159 1D173 1E800 1EEF1 E0001 E0100 F0000 10FFFD E9 153 3B1 416 6F22 AC00 1F642', ' ')
  local command = table.concat(vim.tbl_map(function(code)
    return vim.fn.nr2char(tonumber(code, 16))
  end, codes), '|')
  c:run('odd', command, { permissions = 'danger-full-access', justification = 'to compare' })
  c:armed()
  local asked = c:lua("for _, event in ipairs(_G.events) do if event[1] == 'ConfineQuestion' then return event[2].question.command end end")
  local listed = c:lua("return require('confine').runs()[1].command")
  check.eq(vim.split(listed, '|', { plain = true }), vim.split(asked, '|', { plain = true }))
  c:input('n')
  c:result('odd')
end)

test('a no is a no', function(c)
  local file = outside .. '/plugin-refused'
  c:run('first', 'echo wide > ' .. file)
  check.eq(c:result('first').sandbox.denied, true)
  c:lua("vim.cmd('Confine escalate n1 danger-full-access')")
  check.has(c:armed().text, 'NO SANDBOX')
  c:input('n')
  shows(c, 'n2', 'not allowed: rejected')
  assert(not check.exists(file), 'it was written')
  check.eq(c:lua("return require('confine').runs()[1].state"), 'refused')
end)

test('Neovim itself cannot be reached from a command', function(c)
  local address = c:lua('return vim.v.servername')
  assert(address ~= '', 'Neovim listens nowhere')
  check.eq(c:lua("return vim.fn.filereadable(vim.v.servername) + vim.fn.getftype(vim.v.servername):len()") > 0, true)
  c:lua("vim.fn.setreg('z', 'untouched')")
  local command = ([[export NVIM_LOG_FILE=/dev/null; echo "NVIM: ${NVIM-none}"; %s --clean --headless --server '%s' --remote-expr "setreg('z', 'touched')"]]):format(vim.v.progpath, address)
  local control = vim.system({ 'sh', '-c', command }):wait(20000) -- outside the sandbox it works
  check.eq(control.code, 0, control.stderr)
  check.eq(c:lua("return vim.fn.getreg('z')"), 'touched')
  c:lua("vim.fn.setreg('z', 'untouched')")
  c:run('reach', command)
  check.has(c:result('reach').stdout.text, 'NVIM: none\n')
  check.eq(c:lua("return vim.fn.getreg('z')"), 'untouched')
end)

test('options of setup only tighten', function(c)
  local file = workspace .. '/plugin-narrow'
  c:run('narrow', 'touch ' .. file)
  check.eq(c:result('narrow').sandbox.mode, 'read-only')
  assert(not check.exists(file), 'it was written')
end, ("{ cmd = %q, settings = { sandbox_mode = 'read-only' } }"):format(check.need('CONFINE_BIN')))

test('options of setup do not widen', function(c)
  c:run('wide', 'true')
  check.eq(c:result('wide').sandbox.mode, 'workspace-write')
end, ("{ cmd = %q, settings = { sandbox_mode = 'danger-full-access' } }"):format(check.need('CONFINE_BIN')))

test('the mode can be made narrower, and no wider', function(c)
  c:lua("vim.cmd('Confine mode danger-full-access')")
  c:wait_for("_G.told[1] and _G.told[1]:find('is wider than workspace%-write')")
  c:lua("vim.cmd('Confine mode read-only')")
  c:wait_for("require('confine').statusline():find('read%-only')")
  c:run('narrow', 'true', { mode = 'workspace-write' })
  check.eq(c:result('narrow').sandbox.mode, 'read-only')
  c:lua("vim.cmd('Confine mode configured')")
  c:wait_for("require('confine').statusline():find('workspace%-write')")
  c:run('back', 'true')
  check.eq(c:result('back').sandbox.mode, 'workspace-write')
end)

test('each project has a server of its own, and the folder of a command is no workspace', function(c)
  local other = outside .. '/plugin-other'
  vim.fn.mkdir(other .. '/.git', 'p')
  c:run('cwd', ('touch %s/made'):format(other), { cwd = other })
  assert(c:result('cwd').exitCode ~= 0, 'the folder of a command became writable')
  c:lua('vim.cmd.tcd(...)', other)
  c:run('own', ('touch made; touch %s/made'):format(workspace))
  c:result('own')
  check.eq({ check.exists(other .. '/made'), check.exists(workspace .. '/made') }, { true, false })
  check.eq(c:lua("return #require('confine.client').servers()"), 2)
  vim.fn.delete(other, 'rf')
end)

test('a background run goes on, and is ended', function(c)
  c:lua([[
    _G.handle = require('confine').run('echo up; exec sleep 600', { background = true, on_exit = function(result) _G.exit = result.status end },
      function(failure, result) _G.done.background = { failure = failure, result = result } end)
  ]])
  check.eq(c:result('background').status, 'running')
  check.eq(c:lua('return _G.exit == nil'), true)
  c:wait_for("require('confine').statusline():find('1 run')")
  c:lua("vim.cmd('Confine kill')")
  c:wait_for("_G.exit == 'cancelled'")
  check.eq(c:lua("return require('confine').runs()[1].state"), 'cancelled')
end)

test('a command is cancelled by its handle', function(c)
  c:lua([[
    _G.handle = require('confine').run('echo up; sleep 600', { on_output = function() _G.up = true end },
      function(failure, result) _G.done.cancelled = { failure = failure, result = result } end)
  ]])
  c:wait_for('_G.up')
  c:lua('_G.handle.cancel()')
  check.eq(c:result('cancelled').status, 'cancelled')
end)

test('the tool for agents, as the server describes it', function(c)
  c:lua("require('confine').tool(function(failure, tool) _G.tool = tool or failure end)")
  local tool = c:wait_for('_G.tool')
  check.eq({ tool.name, tool.inputSchema.type }, { 'bash', 'object' })
  check.eq(c:lua("return require('confine').tool()").name, 'bash')
  c:lua([[require('confine').call_tool({ command = 'echo $((40+2)); exit 3', description = 'adds' }, nil, function(text) _G.text = text end)]])
  check.has(c:wait_for('_G.text'), '42')
  check.has(c:lua('return _G.text'), '[exit code: 3]')
  c:lua([[_G.text = nil require('confine').call_tool({ command = 'true', root = '/' }, nil, function(text) _G.text = text end)]])
  check.has(c:wait_for('_G.text'), 'Error: there is no argument "root"')
  c:lua([[_G.text = nil require('confine').call_tool({ command = 'true', workdir = 5 }, nil, function(text) _G.text = text end)]])
  check.has(c:wait_for('_G.text'), 'Error: ')
end)

test('what a command prints can do nothing in the output window', function(c)
  local hostile = [[printf '\033]52;c;aGk=\007\033]0;title\007\033[31mred\033[0m\033[2J\ttab\nvim: set ft=lua:\r\nabc\rdef\n\302\233x \342\200\256y \000z']]
  c:lua("vim.cmd('Confine run ' .. ...)", hostile)
  local text = shows(c, 'n1', '[ok')
  check.has(text, 'red\ttab\n')
  check.has(text, '\ndef\n')
  check.has(text, '\\u{9B}x \\u{202E}y \\u{0}z')
  check.has_not(text, '\27')
  check.eq(c:lua("local b = vim.fn.bufnr('^confine://n1$') return { vim.bo[b].filetype, vim.bo[b].modifiable, vim.bo[b].buftype, vim.bo[b].modeline }"), { '', false, 'nofile', false })
end)

test('much output is shown to its end, and kept within bounds', function(c)
  c:lua("vim.cmd('Confine run seq 300000')")
  local text = shows(c, 'n1', '[ok')
  check.has(text, '\n300000\n[ok')
  check.has(text, 'lines are not shown any more')
  assert(select(2, text:gsub('\n', '')) <= 10010, 'too many lines')
end)

test('the list of runs', function(c)
  c:run('one', 'exit 4')
  c:result('one')
  c:run('two', 'echo hello')
  c:result('two')
  c:lua("vim.cmd('Confine runs')")
  local lines = c:lua('return vim.api.nvim_buf_get_lines(0, 0, -1, false)')
  check.has(lines[2], 'echo hello')
  check.has(lines[3], 'exit 4')
  c:input('jj<CR>')
  check.until_true('the output is opened', function()
    return c:lua("return vim.api.nvim_buf_get_name(0)"):find('confine://n1$')
  end)
  c:input('q')
  check.until_true('that window is closed', function()
    return c:lua("return vim.fn.bufwinid('^confine://n1$') == -1")
  end)
end)

test('a window that outlives its buffer is the person\'s', function(c)
  c:lua("vim.cmd('Confine run echo one')")
  shows(c, 'n1', '[ok')
  for _, way in ipairs({ "vim.api.nvim_input('q')", "vim.cmd('bwipeout')" }) do
    c:lua("vim.cmd('Confine runs') vim.cmd('only') " .. way)
    c:wait_for("vim.api.nvim_buf_get_name(0) == ''", 'another buffer is there')
    check.eq(c:lua("vim.cmd('enew') return { vim.wo.winfixbuf, #_G.told }"), { false, 0 }, way)
  end
end)

test('a session that is loaded leaves nothing of ours behind', function(c)
  local session = outside .. '/session.vim'
  c:lua("vim.cmd('Confine run echo one')")
  shows(c, 'n1', '[ok')
  c:lua("vim.cmd('Confine runs') vim.cmd.mksession(...) vim.cmd('silent %bwipeout!') vim.cmd.source(...)", session)
  check.eq(c:lua("return vim.fn.bufexists('confine://runs')"), 1)
  c:lua("vim.cmd('Confine runs')")
  check.has(c:lua("return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\\n')"), 'echo one')
  check.eq(c:lua([[
    return #vim.tbl_filter(function(buf) return vim.api.nvim_buf_get_name(buf) == 'confine://runs' end, vim.api.nvim_list_bufs())
  ]]), 1)
  check.eq(c:lua('return vim.api.nvim_buf_get_name(0)'), 'confine://runs')
  os.remove(session)
end)

test('autocommands, doctor, log, completion', function(c)
  c:run('one', 'true')
  c:result('one')
  local names = {}
  for _, event in ipairs(c:lua('return _G.events')) do
    if event[1]:find('Run') then
      names[#names + 1] = event[1] .. ' ' .. event[2].run.id .. ' ' .. event[2].run.state
    end
  end
  check.eq(names, { 'ConfineRunStart n1 running', 'ConfineRunEnd n1 completed' })
  c:lua("vim.cmd('Confine doctor')")
  check.until_true('the doctor speaks', function()
    return c:lua("return vim.api.nvim_buf_get_name(0)"):find('confine://doctor')
  end)
  check.has(table.concat(c:lua('return vim.api.nvim_buf_get_lines(0, 0, -1, false)'), '\n'), 'workspace folder: ' .. workspace)
  c:lua("require('confine.log').write('info', 'folder /x vim: set textwidth=7 :')")
  c:lua("vim.o.modeline = true; vim.cmd('Confine log')")
  check.has(c:lua('return vim.api.nvim_buf_get_name(0)'), 'confine.log')
  check.has(c:lua("return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), ' ')"), 'textwidth=7')
  check.eq(c:lua('return vim.bo.textwidth'), 0, 'the log sets no options')
  c:lua("vim.cmd('edit!')")
  check.eq(c:lua('return vim.bo.textwidth'), 0, 'nor when it is read again')
  check.eq(c:lua('return vim.go.modeline'), true, 'other files may')
  check.has(table.concat(c:lua('return vim.api.nvim_buf_get_lines(0, 0, -1, false)'), '\n'), 'is ready')
  check.eq(c:lua("return vim.fn.getcompletion('Confine r', 'cmdline')"), { 'restart', 'run', 'runs' })
  check.eq(c:lua("return vim.fn.getcompletion('Confine mode w', 'cmdline')"), { 'workspace-write' })
  check.eq(c:lua("return vim.fn.getcompletion('Confine run cat story.', 'cmdline')"), { 'story.go' })
  c:lua("vim.cmd('Confine nonsense')")
  check.has(table.concat(c:lua('return _G.told'), '\n'), 'there is no :Confine nonsense')
end)

test('Tab behind a command runs nothing outside the sandbox', function(c)
  local made = workspace .. '/made-by-tab'
  local word = ('`touch %s`'):format(made)
  -- A control: Neovim's own completion does run it.
  c:input((":call input('', '', 'shellcmd')<CR>%s<Tab><Esc>"):format(word))
  check.until_true('the control is made', function()
    return check.exists(made)
  end)
  c:settle()
  os.remove(made)
  c:input((':Confine run %s<Tab><Esc>'):format(word))
  c:input((':Confine run make %s<Tab><Esc>'):format(word))
  c:input((':Confine run<CR>%s<Tab><Esc>'):format(word))
  c:settle()
  check.eq(check.exists(made), false, 'it ran')
  c:input(':Confine run<CR>cat story.<Tab><CR>')
  check.has(shows(c, 'n1', '[ok'), '$ cat story.go')
end)

test('what stands in the lines of a range is run', function(c)
  c:lua("vim.api.nvim_buf_set_lines(0, 0, -1, false, { 'a=1', 'echo \"got $a\"', 'exit 9' })")
  c:lua("vim.cmd('1,2Confine run')")
  check.has(shows(c, 'n1', '[ok'), 'got 1')
end)

test('checkhealth', function(c)
  c:lua("vim.cmd('checkhealth confine')")
  local text = table.concat(c:lua('return vim.api.nvim_buf_get_lines(0, 0, -1, false)'), '\n')
  check.has(text, 'commands run in mode workspace-write, confined by')
  check.has(text, 'workspace folder: ' .. workspace)
  check.has_not(text, 'ERROR')
end)

check.test('nothing is left when Neovim is killed', function()
  local marker = 'plugin-left-' .. vim.fn.getpid()
  local c = child.start(workspace, setup)
  c:run('long', ("exec -a %s sleep 600"):format(marker), { background = true })
  c:result('long')
  local function processes()
    local found = 0
    for name in vim.fs.dir('/proc') do
      local file = name:find('^%d+$') and tonumber(name) ~= vim.fn.getpid() and io.open('/proc/' .. name .. '/cmdline', 'rb')
      if file then
        found = found + ((file:read('*a') or ''):find(marker, 1, true) and 1 or 0)
        file:close()
      end
    end
    return found
  end
  check.until_true('it runs', function()
    return processes() > 0
  end)
  vim.uv.kill(c.pid, 'sigkill')
  vim.fn.jobwait({ c.channel }, 10000)
  check.until_true('nothing is left', function()
    return processes() == 0
  end, 5000)
end)

test('a terminal: colours, size, what is typed, and nothing that reaches further', function(c)
  c:lua("_G.done.caps = nil require('confine').capabilities(function(_, caps) _G.done.caps = caps end)")
  assert(c:wait_for('_G.done.caps').pty, 'this host gives commands no terminals')
  c:lua("vim.fn.setreg('+', 'mine')")
  c:lua("vim.cmd(\"Confine! run printf '\\\\033]0;stolen\\\\007\\\\033[32mgreen\\\\033[0m\\\\n'; stty size; read -r line; echo \\\"got <$line>\\\"; tty -s && echo is-a-tty\")")
  local function text()
    return buffer(c, 'n1')
  end
  shows(c, 'n1', 'green')
  check.eq(c:lua("return vim.bo[vim.fn.bufnr('^confine://n1$')].buftype"), 'terminal')
  check.has_not(tostring(c:lua("return vim.b[vim.fn.bufnr('^confine://n1$')].term_title")), 'stolen')
  check.eq(c:lua("return vim.api.nvim_get_mode().mode"), 't')
  c:input('typed é<CR>')
  shows(c, 'n1', 'got <typed é>')
  shows(c, 'n1', 'is-a-tty')
  shows(c, 'n1', '[ok,')
  check.has(text(), ('12 %d'):format(c:lua('return vim.o.columns')))
  check.until_true('it is normal mode again', function()
    return c:lua('return vim.api.nvim_get_mode().mode') ~= 't'
  end)
end)

test('a terminal asks like any other run, and what is typed before a yes is dropped', function(c)
  local file = outside .. '/plugin-terminal'
  c:lua("vim.cmd('Confine! run echo wide > ' .. ...)", file)
  shows(c, 'n1', 'sandbox refused')
  c:lua("vim.cmd('Confine escalate')")
  c:question()
  c:input('Y')
  c:settle()
  check.eq(check.exists(file), false, 'it ran')
  c:input('<C-\\><C-n>')
  c:armed()
  c:input('n')
  shows(c, 'n2', '[refused')
  check.eq(check.exists(file), false, 'it ran')
end)

test('what decides later commands is shown, and an answer can be ended', function(c)
  local file = outside .. '/plugin-approved'
  local wide = 'echo wide > ' .. file
  c:run('first', wide)
  c:result('first')
  c:lua("require('confine').escalate('n1', {}, function(failure, result) _G.done.again = { failure = failure, result = result } end)")
  c:armed()
  c:input('S')
  check.eq(c:result('again').exitCode, 0)
  os.remove(file)
  c:lua("vim.cmd('Confine approvals')")
  local function text()
    return c:lua("return table.concat(vim.fn.getbufline('confine://approvals', 1, '$'), '\\n')")
  end
  local function reads(part)
    check.until_true(('the window shows %q'):format(part), function()
      return text():find(part, 1, true)
    end)
  end
  reads('allow  ' .. wide)
  check.has(text(), 'Workspace folder: ' .. workspace)
  check.has(text(), 'Exactly this command runs in workspace-write with 1 path to WRITE without a question.')
  check.has(text(), outside)
  check.eq(c:lua('return { vim.wo.wrap, vim.wo.breakindent, vim.bo.modifiable }'), { true, true, false })
  c:input('/^allow<CR>x')
  reads('no answer of yours still counts')
  c:lua("require('confine').escalate('n1', {}, function(failure, result) _G.done.third = { failure = failure, result = result } end)")
  check.has(c:armed().text, wide) -- asked again
  c:input('n')
  check.eq(c:result('third').status, 'refused')
  check.eq(check.exists(file), false, 'it ran')
  reads('refuse ' .. wide) -- a no counts, too
  -- A rule is shown, and not ended.
  local settings = vim.env.XDG_CONFIG_HOME .. '/confine/config.toml'
  local before = check.read(settings)
  local ok, problem = pcall(function()
    vim.fn.writefile(vim.split(before .. '\n[[rules]]\ndecision = "deny"\ncommand = ["no-such-command"]\nreason = "for a test"\n', '\n'), settings)
    reads('refuse no-such-command')
    check.has(text(), 'for a test')
    c:input('Gx')
    check.until_true('it says where the rule stands', function()
      return table.concat(c:lua('return _G.told'), '\n'):find('a rule is taken out where it stands: ' .. settings, 1, true)
    end)
  end)
  vim.fn.writefile(vim.split(before, '\n'), settings, 'b')
  assert(ok, problem)
end)
