-- The question window in a real Neovim, asked by a server that says what the test
-- wants: which keys count, what closes it, what it shows.
local check = require('check')
local child = require('child')
local sample = require('sample')

local workspace = check.need('STORY_WORKSPACE')
local fake = vim.inspect({ vim.v.progpath, '--clean', '--headless', '-l', check.plugin .. '/test/fake.lua' }):gsub('\n', ' ')
local setup = ('{ cmd = %s }'):format(fake)

-- ask lets the fake ask a question, and returns once it was sent.
local function ask(c, name, more)
  c:run(name, 'ask(' .. vim.inspect(sample.question(vim.tbl_extend('force', { id = name .. '-id' }, more or {}))) .. ')')
end

-- outcome is what the server was answered.
local function outcome(c, name)
  return vim.json.decode(c:result(name).modelText).outcome
end

local once = { outcome = 'selected', optionId = 'allow-once' }
local session = { outcome = 'selected', optionId = 'allow-session' }
local refused = { outcome = 'selected', optionId = 'refuse' }
local cancelled = { outcome = 'cancelled' }

-- unanswered checks that no key has been obeyed, after all input was read.
local function unanswered(c, name)
  c:settle()
  check.eq(c:lua('return _G.done[...] == nil', name), true, 'it waits')
  c:question()
end

local function test(title, fn, options)
  check.test(title, function()
    child.with(workspace, options or setup, fn)
  end)
end

test('each key does what the window says', function(c)
  for i, case in ipairs({ { 'Y', once }, { 'S', session }, { 'n', refused }, { '<CR>', refused }, { 'q', cancelled }, { '<Esc>', cancelled } }) do
    local name = 'key' .. i
    ask(c, name)
    local shown = c:armed()
    check.has(shown.text, 'make install')
    check.eq(shown.current, true)
    c:input(case[1])
    check.eq(outcome(c, name), case[2], case[1])
    c:no_question()
  end
end)

test('typed ahead, nothing counts', function(c)
  c:lua("require('confine.ui.guard').quiet = 1e9")
  ask(c, 'early')
  c:question()
  c:lua("require('confine.ui.float').focus()")
  for _, key in ipairs({ 'Y', 'S', 'n', '<CR>', 'q', '<Esc>', 'Y' }) do
    c:input(key)
    unanswered(c, 'early')
  end
  c:lua("require('confine.ui.guard').quiet = 0")
  c:armed()
  c:input('n')
  check.eq(outcome(c, 'early'), refused)
end)

test('while something is typed the focus stays, and keys reach what they were meant for', function(c)
  c:input('i')
  ask(c, 'insert')
  local shown = c:question()
  check.eq(shown.current, false)
  check.has(shown.footer, ':Confine answer')
  c:input('YSn')
  unanswered(c, 'insert')
  check.eq(c:lua('return vim.api.nvim_get_current_line()'), 'YSn')
  c:input('<Esc>')
  c:armed()
  c:input('n')
  check.eq(outcome(c, 'insert'), refused)
end)

test('the focus is not taken in other modes', function(c)
  c:lua("require('confine.ui.guard').quiet = 0")
  for i, case in ipairs({
    { keys = ':echo "', stop = '<Esc>' },
    { keys = 'v', stop = '<Esc>' },
    { keys = 'q:', stop = ':q<CR>' }, -- the command-line window
    { keys = 'qa', stop = 'q' }, -- a macro is recorded
    { keys = ':terminal<CR>i', stop = '<C-\\><C-n>' },
  }) do
    local name = 'mode' .. i
    c:input(case.keys)
    c:settle()
    ask(c, name)
    check.eq(c:question().current, false, case.keys)
    c:settle()
    check.eq(c:question().current, false, case.keys)
    c:input(case.stop)
    check.eq(c:armed().current, true, case.keys)
    c:input('n')
    check.eq(outcome(c, name), refused)
  end
end)

test('taking the focus leaves what was typed for something else', function(c)
  c:lua("require('confine.ui.guard').quiet = 1e9")
  ask(c, 'ahead')
  c:question()
  -- Neovim waits here for messages, and reads no key meanwhile.
  c:lua([[
    vim.api.nvim_input('imy text<Esc>')
    require('confine.ui.guard').quiet = 0
    vim.wait(200, function() return _G.question().current end, 10)
  ]])
  c:armed()
  check.eq(c:lua("return vim.fn.getbufline(1, 1, '$')"), { 'my text' })
  c:input('n')
  check.eq(outcome(c, 'ahead'), refused)
end)

test('a plugin that waits for a letter gets it, and keeps the focus', function(c)
  c:lua([[
    require('confine.ui.guard').quiet = 0
    vim.keymap.set('n', '<F8>', function() _G.got = vim.fn.getcharstr() end)
  ]])
  c:input('<F8>')
  ask(c, 'letter')
  check.eq(c:question().current, false)
  c:settle()
  check.eq(c:question().current, false)
  c:input('Y')
  c:wait_for("_G.got == 'Y'")
  unanswered(c, 'letter')
  c:armed()
  c:input('<F8>') -- now with the question in front
  check.until_true('no key counts', function()
    return c:question().footer:find('…', 1, true)
  end)
  c:input('S')
  c:wait_for("_G.got == 'S'")
  unanswered(c, 'letter')
  c:armed()
  c:input('n')
  check.eq(outcome(c, 'letter'), refused)
end)

test(':Confine answer by a mapping leads out of insert mode and terminals', function(c)
  c:lua("require('confine.ui.guard').quiet = 0 vim.keymap.set({ 'i', 't' }, '<F7>', '<Cmd>Confine answer<CR>')")
  for i, keys in ipairs({ 'i', ':terminal<CR>i' }) do
    local name = 'mapped' .. i
    c:input(keys)
    c:settle()
    ask(c, name)
    check.eq(c:question().current, false)
    c:input('<F7>')
    check.eq(c:armed().current, true, keys)
    c:input('n')
    check.eq(outcome(c, name), refused)
  end
end)

test('what completes a command that was begun is no answer', function(c)
  c:lua("require('confine.ui.guard').quiet = 0")
  for i, keys in ipairs({ 'd', 'r', 'f', '"', 'm', 'g' }) do
    local name = 'pending' .. i
    -- Neovim asks for the second key before it looks at messages.
    c:lua('local name, command, keys = ... _G.run(name, command) vim.api.nvim_input(keys)', name, 'ask(' .. vim.inspect(sample.question({ id = name })) .. ')', keys)
    c:input('Y')
    unanswered(c, name)
    if keys == '"' then -- a register was named, and its command is still to come
      check.eq(c:question().current, false)
      c:input('<Esc>')
    end
    c:armed()
    c:input('n')
    check.eq(outcome(c, name), refused)
  end
end)

test('macros, mappings, scripts and counts do not answer yes', function(c)
  c:lua([[
    vim.fn.setreg('a', 'Y')
    vim.keymap.set('n', 'Z', 'Y', { remap = true })
    vim.keymap.set('n', 'X9', ':normal Y<CR>', { remap = true })
    vim.keymap.set('n', 'gn', 'n', { remap = true })
  ]])
  ask(c, 'scripted')
  c:armed()
  -- The window maps @ and Q away; a mapping of the person's can play a macro all the same.
  c:lua("vim.keymap.set('n', '<F5>', function() vim.cmd('normal! @a') end)")
  c:lua("vim.keymap.set('n', '<F6>', '@a', { remap = false })")
  for _, keys in ipairs({ '@a', '<F5>', '<F6>', 'Z', 'X9' }) do
    c:input(keys)
    unanswered(c, 'scripted')
  end
  c:lua("vim.cmd('normal Y')")
  unanswered(c, 'scripted')
  for _, flags in ipairs({ '', 'm', 'x', 'n', 'nx', 'i' }) do -- with t they claim to be typed
    c:lua("vim.api.nvim_feedkeys('Y', ..., false)", flags)
    unanswered(c, 'scripted')
  end
  pcall(vim.rpcrequest, c.channel, 'nvim_paste', 'Y', true, -1) -- nothing can be pasted in there
  unanswered(c, 'scripted')
  c:input('gn') -- a mapping may refuse
  check.eq(outcome(c, 'scripted'), refused)
end)

test('a yes that is recorded is not replayed', function(c)
  ask(c, 'recorded')
  c:armed()
  c:lua("vim.keymap.del('n', 'q', { buffer = true })") -- so that a macro can be recorded in here
  c:input('qb')
  c:settle()
  check.eq(c:lua('return vim.fn.reg_recording()'), 'b')
  c:input('Y')
  check.eq(outcome(c, 'recorded'), once)
  c:input('q')
  c:settle()
  ask(c, 'replayed')
  c:armed()
  c:lua("vim.keymap.set('n', '<F6>', '@b')")
  c:input('<F6>')
  unanswered(c, 'replayed')
  c:input('n')
  check.eq(outcome(c, 'replayed'), refused)
end)

test('what closes the window is no yes', function(c)
  for i, command in ipairs({ ':q<CR>', '<C-w>c', 'ZZ', ':close<CR>', ':quit!<CR>', ':bwipeout!<CR>' }) do
    local name = 'closed' .. i
    ask(c, name)
    c:armed()
    c:input(command)
    check.eq(outcome(c, name), cancelled, command)
    c:no_question()
  end
end)

test('closed by something else it comes back, and has to be read again', function(c)
  ask(c, 'reopened')
  c:armed()
  c:input('<C-w>w')
  check.until_true('the focus is elsewhere', function()
    return not c:question().current
  end)
  c:lua("require('confine.ui.guard').quiet = 1e9")
  c:lua("vim.api.nvim_win_close(_G.question().win, true)")
  check.has(c:question().text, 'make install')
  c:lua("require('confine.ui.float').focus()")
  c:input('Y')
  unanswered(c, 'reopened')
  c:lua("require('confine.ui.guard').quiet = 0")
  c:armed()
  c:input('n')
  check.eq(outcome(c, 'reopened'), refused)
end)

test('without autocommands it is as safe', function(c)
  c:lua("vim.o.eventignore = 'all'")
  ask(c, 'ignored')
  c:armed()
  c:lua("require('confine.ui.guard').quiet = 1e9")
  c:input(':q<CR>')
  c:settle()
  c:input('Y')
  unanswered(c, 'ignored')
  c:lua("require('confine.ui.guard').quiet = 0")
  c:armed()
  c:input('n')
  check.eq(outcome(c, 'ignored'), refused)
end)

test('it follows to another tab page', function(c)
  ask(c, 'tabs')
  c:armed()
  c:input(':tabnew<CR>')
  check.until_true('the question is in this tab page', function()
    return c:lua('local q = _G.question() return q ~= nil and vim.api.nvim_win_get_tabpage(q.win) == vim.api.nvim_get_current_tabpage()')
  end)
  c:armed()
  c:input('n')
  check.eq(outcome(c, 'tabs'), refused)
end)

test('a long question must be read to its end', function(c)
  c:lua('vim.o.columns, vim.o.lines = 60, 15')
  ask(c, 'long', { command = ('echo ' .. ('x'):rep(60) .. ' && '):rep(40) .. 'rm -rf /important' })
  local shown = c:wait_for("(function() local q = _G.question() return q and q.footer:find('more rows') and q end)()", 'it says that there is more')
  assert(shown.height <= 15 - 3, shown.height)
  check.has(shown.text:gsub('\n┃ ', ''), 'rm -rf /important')
  c:input('Y')
  unanswered(c, 'long')
  c:input('G')
  c:wait_for("_G.question().footer:find('once')", 'the end was shown')
  c:input('Y')
  check.eq(outcome(c, 'long'), once)
end)

test('a change of the size draws it anew', function(c)
  ask(c, 'resized', { command = ('abcdefghi '):rep(30) })
  local wide = c:armed()
  c:lua("require('confine.ui.guard').quiet = 1e9")
  c:lua('vim.o.columns, vim.o.lines = 50, 12')
  local narrow = c:wait_for('(function() local q = _G.question() return q and q.width <= 46 and q.height <= 10 and q end)()', 'it is narrow')
  assert(wide.width > narrow.width)
  check.has(narrow.text:gsub('\n┃ ', ''), ('abcdefghi '):rep(30))
  c:input('Y')
  unanswered(c, 'resized')
  c:lua('vim.o.columns, vim.o.lines = 12, 3')
  c:settle()
  c:lua('vim.o.columns, vim.o.lines = 100, 40')
  c:lua("require('confine.ui.guard').quiet = 0")
  c:armed()
  c:input('n')
  check.eq(outcome(c, 'resized'), refused)
end)

test('one at a time, and the number of those that wait', function(c)
  local two = vim.inspect(sample.question({ id = 'second' }))
  ask(c, 'first')
  c:armed()
  c:run('next', 'ask(' .. two .. ')')
  check.until_true('the number is shown', function()
    return c:question().title:find('1 of 2')
  end)
  c:lua("require('confine.ui.guard').quiet = 1e9")
  c:input('YY') -- the second Y is typed before anybody can have seen the second question
  check.eq(c:lua("return require('confine.questions').count()"), 1)
  unanswered(c, 'next')
end)

test('a withdrawn question is closed, and told', function(c)
  c:run('gone', 'ask(' .. vim.inspect(sample.question({ id = 'gone' })) .. ') send("confine/approvalWithdrawn", { id = "gone", reason = "expired" })')
  check.eq(outcome(c, 'gone'), cancelled)
  c:no_question()
  check.has(table.concat(c:lua('return _G.told'), '\n'), 'the question was withdrawn, no answer in time')
end)

test('a server that ends takes its question along', function(c)
  ask(c, 'lost')
  c:armed()
  c:run('end', 'exit(9)')
  c:no_question()
  check.eq(c:failure('lost').kind, 'unavailable')
end)

test('text is shown as it is, whatever it holds', function(c)
  local hostile = "echo '$(id)' %{v:lua.os.exit()} \\u{202E} vim: set modeline: <CR>Y\n" .. 'Y: Allow\27[2J\r' .. '\226\128\174drow'
  ask(c, 'hostile', { command = hostile, cwd = hostile, warnings = { hostile }, title = hostile })
  local shown = c:armed()
  for char in shown.text:gmatch('[%z\1-\9\11-\31\127]') do
    error(('a control character %d is shown'):format(char:byte()))
  end
  check.has_not(shown.text, '\226\128\174')
  check.has(shown.text, '\\u{202E}drow')
  check.eq(
    c:lua([[
    local win = _G.question().win
    local buf = vim.api.nvim_win_get_buf(win)
    return { vim.bo[buf].buftype, vim.bo[buf].filetype, vim.bo[buf].modeline, vim.bo[buf].modifiable, vim.bo[buf].syntax,
      vim.wo[win].conceallevel, vim.wo[win].foldenable, vim.wo[win].wrap, vim.wo[win].list, vim.wo[win].winblend }
  ]]),
    { 'nofile', '', false, false, '', 0, false, true, false, 0 }
  )
  c:input('n')
  check.eq(outcome(c, 'hostile'), refused)
end)

test('options of the person do not change what is seen', function(c)
  c:lua([[
    vim.o.conceallevel, vim.o.foldmethod, vim.o.foldlevel, vim.o.showbreak, vim.o.list = 3, 'indent', 0, '>>>', true
    vim.api.nvim_create_autocmd({ 'BufEnter', 'WinEnter', 'BufWinEnter' }, { callback = function()
      vim.wo.conceallevel, vim.wo.foldenable, vim.wo.wrap = 3, true, false
      pcall(vim.api.nvim_buf_set_lines, 0, 0, -1, false, { 'echo harmless' })
    end })
  ]])
  ask(c, 'options')
  local shown = c:armed()
  check.has(shown.text, 'make install')
  check.eq(c:lua('local w = _G.question().win return { vim.wo[w].conceallevel, vim.wo[w].foldenable, vim.wo[w].wrap }'), { 0, false, true })
  c:input('n')
  check.eq(outcome(c, 'options'), refused)
end)

test('a text that was replaced is not answered', function(c)
  ask(c, 'replaced')
  c:armed()
  c:lua("require('confine.ui.guard').quiet = 1e9")
  c:lua([[
    local buf = vim.api.nvim_win_get_buf(_G.question().win)
    vim.bo[buf].modifiable = true
    vim.api.nvim_buf_set_lines(buf, 0, -1, false, { 'echo harmless' })
    vim.api.nvim_input('Y')
  ]])
  unanswered(c, 'replaced')
  check.has(c:question().text, 'make install')
end)

test('a question that cannot be refused, or has two of one kind', function(c)
  ask(c, 'broken', { defaultOptionId = 'allow-once' })
  check.eq(outcome(c, 'broken'), cancelled)
  local options = sample.question().options
  options[4] = { optionId = 'allow-all', name = 'Allow', kind = 'allow_once' }
  ask(c, 'double', { options = options })
  check.has_not(c:armed().text, 'Y: ')
  c:input('Y')
  unanswered(c, 'double')
  c:input('n')
  check.eq(outcome(c, 'double'), refused)
end)

test('autocommands tell of questions', function(c)
  ask(c, 'event')
  c:armed()
  c:input('n')
  outcome(c, 'event')
  local seen = {}
  for _, event in ipairs(c:lua('return _G.events')) do
    if event[1]:find('^ConfineQuestion') then
      seen[#seen + 1] = { event[1], event[2].id, event[2].outcome }
    end
  end
  check.eq(seen, { { 'ConfineQuestion', 'event-id' }, { 'ConfineQuestionEnd', 'event-id', 'reject_once' } })
end)

test('an autocommand that fails changes nothing', function(c)
  c:lua("vim.api.nvim_create_autocmd('User', { pattern = 'ConfineQuestion', callback = function() error('mine') end })")
  ask(c, 'failing')
  c:armed()
  c:input('Y')
  check.eq(outcome(c, 'failing'), once)
end)

test('autocommands of the person that fail keep no question and no command', function(c)
  c:lua([[
    vim.api.nvim_create_autocmd({ 'WinNew', 'WinEnter', 'WinLeave', 'BufEnter', 'BufLeave', 'BufWinEnter', 'BufNew', 'OptionSet' }, { callback = function()
      error('mine')
    end })
  ]])
  ask(c, 'thrown')
  c:armed()
  c:input('Y')
  check.eq(outcome(c, 'thrown'), once)
  c:run('shown', 'reply()', { show = true })
  check.eq(c:result('shown').status, 'completed')
  check.has(table.concat(c:lua('return _G.told'), '\n'), 'the output of n2 is not shown')
end)

test('a message is one line, whatever it quotes', function(c)
  c:lua([[require('confine.log').tell('warn', 'a\nb\27[31m\226\128\174c')]])
  check.eq(c:lua('return _G.told'), { 'confine: a\\nb\\u{1B}[31m\\u{202E}c' })
end)

local select_setup = ("{ cmd = %s, question = 'select' }"):format(fake)

test('vim.ui.select: refusal first, obeyed, late and early answers', function(c)
  c:lua([[
    _G.prompts = {}
    vim.ui.select = function(items, opts, on_choice)
      table.insert(_G.prompts, { prompt = opts.prompt, items = vim.tbl_map(opts.format_item, items),
        choose = function(i) on_choice(items[i], i) end })
    end
    function _G.choose(i) _G.prompts[#_G.prompts].choose(i) end
    require('confine.ui.guard').quiet = 0
  ]])
  ask(c, 'one')
  c:wait_for('#_G.prompts == 1')
  local prompt = c:lua('return { _G.prompts[1].prompt, _G.prompts[1].items }')
  check.has(prompt[1], '«make install»')
  check.eq(prompt[2], { 'Refuse', 'Allow this once', 'Allow for this session' })
  c:lua('_G.choose(2)')
  check.eq(outcome(c, 'one'), once)
  ask(c, 'two')
  c:wait_for('#_G.prompts == 2')
  c:lua('_G.choose(nil)')
  check.eq(outcome(c, 'two'), cancelled)
  ask(c, 'early') -- a yes that nobody can have read for is asked again, then refused
  for i = 3, 5 do
    c:wait_for(('#_G.prompts == %d'):format(i))
    c:lua("require('confine.ui.guard').quiet = 1e9")
    c:lua('_G.choose(2)')
    local waits = c:lua('return _G.done.early == nil')
    check.eq(waits, true)
  end
  c:wait_for('#_G.prompts == 6')
  c:lua('_G.choose(2)')
  check.eq(outcome(c, 'early'), cancelled)
  c:lua("require('confine.ui.guard').quiet = 0")
  c:run('gone', 'ask(' .. vim.inspect(sample.question({ id = 'gone' })) .. ')')
  c:wait_for('#_G.prompts == 7')
  c:lua("local q = require('confine.questions') q.withdraw(q.current().server, 'gone')")
  c:lua('_G.choose(2)')
  check.eq(outcome(c, 'gone'), cancelled)
  -- What does not fit into a message is shown in the window.
  ask(c, 'large', { unshown = 1 })
  c:armed()
  c:input('n')
  check.eq(outcome(c, 'large'), refused)
end, select_setup)

test('vim.ui.select: whoever goes on typing says no yes', function(c)
  c:lua([[
    _G.prompts, _G.clock = {}, 0
    vim.uv.hrtime = function() return _G.clock * 1e6 end
    vim.ui.select = function(items, _, on_choice)
      table.insert(_G.prompts, function(i) on_choice(items[i], i) end)
    end
  ]])
  ask(c, 'typing')
  c:wait_for("require('confine.questions').count() == 1")
  c:lua('_G.clock = 500')
  c:wait_for('#_G.prompts == 1')
  for _ = 1, 5 do
    c:lua('_G.clock = _G.clock + 200')
    c:input('h')
    c:settle()
  end
  c:lua('_G.prompts[1](2)')
  c:wait_for('#_G.prompts == 2')
  check.eq(c:lua('return _G.done.typing == nil'), true)
  c:lua('_G.clock = _G.clock + 500')
  c:lua('_G.prompts[2](2)')
  check.eq(outcome(c, 'typing'), once)
end, select_setup)

test('vim.ui.select: the list waits until nothing else is typed, and takes none of it', function(c)
  c:lua([[
    require('confine.ui.guard').quiet = 0
    _G.prompts = {}
    vim.ui.select = function(items, _, on_choice)
      table.insert(_G.prompts, { mode = vim.api.nvim_get_mode().mode, choose = function(i) on_choice(items[i], i) end })
    end
  ]])
  for i, case in ipairs({
    { keys = 'i', more = 'my 2 texts', stop = '<Esc>' },
    { keys = ':echo "', more = '2', stop = '<Esc>' },
    { keys = 'qa', more = 'x', stop = 'q' }, -- a macro is recorded
  }) do
    local name = 'mode' .. i
    -- Keys and question come at once: Neovim reads keys first.
    c:lua('local name, command, keys = ... vim.api.nvim_input(keys) _G.run(name, command)', name, 'ask(' .. vim.inspect(sample.question({ id = name })) .. ')', case.keys)
    c:wait_for("require('confine.questions').count() == 1")
    c:input(case.more)
    c:settle()
    check.eq(c:lua('return #_G.prompts'), i - 1, case.keys)
    c:input(case.stop)
    c:wait_for(('#_G.prompts == %d'):format(i))
    check.eq(c:lua('return _G.prompts[#_G.prompts].mode'), 'n')
    c:lua('_G.prompts[#_G.prompts].choose(1)')
    check.eq(outcome(c, name), refused)
  end
  check.has(table.concat(c:lua('return vim.api.nvim_buf_get_lines(0, 0, -1, false)'), '\n'), 'my 2 text') -- x took one
  check.has(table.concat(c:lua('return _G.told'), '\n'), 'a question waits')
end, select_setup)

test('vim.ui.select: :Confine answer asks again, and the list before counts for nothing', function(c)
  c:lua([[
    require('confine.ui.guard').quiet = 0
    _G.prompts = {}
    vim.ui.select = function(items, _, on_choice)
      table.insert(_G.prompts, function(i) on_choice(items[i], i) end)
    end
    vim.cmd('Confine answer')
  ]])
  check.eq(c:lua('return _G.told'), { 'confine: no question waits' })
  ask(c, 'lost')
  c:wait_for('#_G.prompts == 1')
  c:lua("vim.cmd('Confine answer')")
  check.eq(c:lua('return { #_G.prompts, #_G.told }'), { 2, 1 })
  c:lua('_G.prompts[1](2) _G.prompts[1](nil)')
  check.eq(c:lua('return _G.done.lost == nil'), true)
  c:lua('_G.prompts[2](2)')
  check.eq(outcome(c, 'lost'), once)
end, select_setup)
