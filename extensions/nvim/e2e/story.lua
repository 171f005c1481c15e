-- The main job, lived through by Neovim: commands of a real project run in the
-- sandbox, one is refused by the kernel, the person is asked, and what the
-- person says is what happens. Started by .ci/story, which makes the project.
--
-- Every check looks at the disk, an exit code, a process or a message.
package.path = vim.fs.dirname(arg[0]) .. '/?.lua;' .. package.path
local editor = require('editor')

local workspace = editor.need('STORY_WORKSPACE') -- a git repository with a Go module
local outside = editor.need('STORY_OUTSIDE') -- beside it, writable for us and not for commands

-- Neovim reports a killed server here.
vim.notify = function(message)
  io.write('note ' .. message .. '\n')
end

local passed, failed = 0, 0
local function chapter(title, tell)
  local ok, problem = xpcall(tell, debug.traceback)
  if ok then
    passed = passed + 1
    io.write('ok   ' .. title .. '\n')
  else
    failed = failed + 1
    io.write('FAIL ' .. title .. '\n' .. problem .. '\n')
  end
  io.flush()
end

local function eq(got, want, what)
  if not vim.deep_equal(got, want) then
    error(('%s: got %s, want %s'):format(what or 'value', vim.inspect(got), vim.inspect(want)), 2)
  end
end

local function one_of(got, choices)
  if not vim.tbl_contains(choices, got) then
    error(('got %s, want one of %s'):format(vim.inspect(got), vim.inspect(choices)), 2)
  end
end

local function exists(file)
  return vim.uv.fs_lstat(file) ~= nil
end

local function read(file)
  local handle = assert(io.open(file, 'rb'))
  local text = handle:read('*a')
  handle:close()
  return text
end

local function write(file, text)
  local handle = assert(io.open(file, 'wb'))
  handle:write(text)
  handle:close()
end

local function git(...)
  local done = vim.system({ 'git', '-C', workspace, ... }, { text = true }):wait()
  assert(done.code == 0, done.stderr)
  return vim.trim(done.stdout)
end

local function writes(file)
  return ("printf wide > '%s'"):format(file)
end

local function about_file(denials, file)
  for _, denial in ipairs(denials or {}) do
    if denial.path == file and denial.count >= 1 then
      return true
    end
  end
  return false
end

-- denied runs a command that writes outside and checks that the kernel refused it.
local function denied(e, file, run_id)
  local result = e:run({ command = writes(file), runId = run_id })
  eq(result.status, 'completed', 'status')
  assert(result.exitCode ~= 0, 'the command did not fail')
  eq(result.sandbox.denied, true, 'denied')
  assert(about_file(result.sandbox.denials, file), vim.inspect(result.sandbox.denials))
  assert(not exists(file), file .. ' was written')
  one_of('danger-full-access', result.escalation.targets)
  return result
end

local function escalate(e, run_id)
  return e:request('requestEscalation', { runId = run_id, sandboxPermissions = 'danger-full-access', justification = 'the report goes beside the project' })
end

-- nothing_runs checks that file stays absent, also after the server had every chance to write it: what was
-- answered before goes out before the end of one run, and would have run before the end of another.
local function nothing_runs(e, file)
  e:run('true')
  e:run('true')
  assert(not exists(file), file .. ' was written')
end

local e

chapter('the server starts and says what it is', function()
  e = editor.start(workspace)
  eq(vim.tbl_get(e.client.server_capabilities, 'experimental', 'confine', 'protocolVersion'), 1)
  one_of('confine.server.run', e.client.server_capabilities.executeCommandProvider.commands)
  local host = e:call('capabilities', { wait = true })
  eq(host.state, 'ready')
  eq(host.provider, 'landlock')
  eq(host.canAsk, true)
  eq(host.roots, { workspace })
  local mode = vim.iter(host.settings):find(function(setting)
    return setting.key == 'sandbox_mode'
  end)
  eq(mode.value, 'workspace-write')
end)

chapter('git commit works', function()
  write(workspace .. '/notes.txt', 'written by Neovim\n')
  local result = e:run({ command = 'git add -A && git commit -q -m "from the sandbox"', runId = 'commit' })
  eq(result.exitCode, 0, result.modelText)
  eq({ result.status, result.runId }, { 'completed', 'commit' })
  eq({ result.sandbox.mode, result.sandbox.provider, result.sandbox.denied }, { 'workspace-write', 'landlock', false })
  eq(git('log', '-1', '--format=%s'), 'from the sandbox')
  eq(git('show', 'HEAD:notes.txt'), 'written by Neovim')
  eq(git('status', '--porcelain'), '')
end)

chapter('go test works', function()
  local result = e:run('go test -v ./...')
  eq(result.exitCode, 0, result.modelText)
  assert(result.stdout.text:find('--- PASS: TestGreeting', 1, true), result.stdout.text)
  assert(result.stdout.text:find('\nok%s+example%.test/story%s'), result.stdout.text)
  local failing = e:run({ command = 'go test ./...', env = { STORY_FAIL = '1' } })
  eq(failing.exitCode, 1, failing.modelText)
  eq(failing.sandbox.denied, false, 'a test that fails by itself is no denial')
end)

chapter('output arrives in order, then the exit, then the answer', function()
  local result = e:run({ command = 'for i in $(seq 1 2000); do echo "line $i"; echo "error $i" >&2; done; exit 3', runId = 'stream' })
  eq(result.exitCode, 3)
  local text = { stdout = '', stderr = '' }
  for i, piece in ipairs(e:told('confine/output', 'stream')) do
    eq(piece.seq, i - 1, 'seq')
    eq(piece.offset, #text[piece.stream], 'offset')
    text[piece.stream] = text[piece.stream] .. (piece.data or vim.base64.decode(piece.base64))
  end
  local lines, errors = {}, {}
  for i = 1, 2000 do
    lines[i], errors[i] = ('line %d\n'):format(i), ('error %d\n'):format(i)
  end
  eq(text, { stdout = table.concat(lines), stderr = table.concat(errors) }, 'output')
  eq({ stdout = result.stdout.text, stderr = result.stderr.text }, text, 'result')
  local order = {}
  for _, event in ipairs(e.events) do
    if (event.params or event.result or {}).runId == 'stream' then
      order[#order + 1] = event.method or 'answer'
    end
  end
  eq({ order[#order - 2], order[#order - 1], order[#order] }, { 'confine/output', 'confine/exit', 'answer' })
  eq(e:told('confine/exit', 'stream')[1].exitCode, 3)
end)

chapter('a write outside is refused, asked about, and allowed once', function()
  local file = outside .. '/nvim-allowed'
  denied(e, file, 'allow-1')
  local reply = escalate(e, 'allow-1')
  local question = e:next_question()
  local asked = question.params
  eq({ asked.kind, asked.command, asked.cwd, asked.mode }, { 'escalation', writes(file), workspace, 'workspace-write' })
  eq(asked.wanted.mode, 'danger-full-access')
  assert(about_file(asked.evidence, file), vim.inspect(asked.evidence))
  assert(asked.options[1].kind:find('^reject'), 'the first option does not refuse')
  assert(not exists(file), 'it ran before the answer')
  question:choose('allow_once')
  local result = e:wait(reply)
  eq(result.exitCode, 0, result.modelText)
  eq({ result.sandbox.mode, result.approval.outcome }, { 'danger-full-access', 'allowed-once' })
  eq(read(file), 'wide')
end)

chapter('once means once', function()
  local file = outside .. '/nvim-allowed'
  assert(os.remove(file))
  denied(e, file, 'allow-2')
  local reply = escalate(e, 'allow-2')
  e:next_question():choose('reject_once') -- it had to ask again
  eq(e:wait(reply).status, 'refused')
  nothing_runs(e, file)
end)

chapter('a no is a no, and is not asked about again', function()
  local file = outside .. '/nvim-refused'
  denied(e, file, 'refuse')
  local reply = escalate(e, 'refuse')
  e:next_question():choose('reject_once')
  local result = e:wait(reply)
  eq({ result.status, result.approval.outcome }, { 'refused', 'rejected' })
  nothing_runs(e, file)
  eq(e:wait(escalate(e, 'refuse')).status, 'refused')
  eq(#e.questions, 0, 'questions asked twice')
  nothing_runs(e, file)
end)

chapter('a cancelled request runs nothing, whatever is answered later', function()
  local file = outside .. '/nvim-cancelled'
  denied(e, file, 'cancel')
  local reply = escalate(e, 'cancel')
  local question = e:next_question()
  e:cancel(reply)
  local result = e:wait(reply) -- Neovim would never call back for error -32800
  one_of(result.status, { 'cancelled', 'refused' })
  eq(result.approval.outcome, 'cancelled')
  editor.until_true(function()
    return vim.iter(e:told('confine/approvalWithdrawn')):any(function(params)
      return params.id == question.params.id
    end)
  end, 'the question is withdrawn')
  question:choose('allow_once')
  nothing_runs(e, file)
end)

chapter('a background run is read, waited for and killed', function()
  local marker = 'nvim-story-background-' .. vim.fn.getpid()
  local started = e:run({ command = ('echo ready; exec -a %s sleep 600'):format(marker), runId = 'background', background = true })
  eq(started.status, 'running')
  editor.until_true(function()
    return #e:told('confine/output', 'background') > 0
  end, 'its output arrives')
  local piece = e:call('confine/runs/read', { runId = 'background', offset = 2 })
  eq({ piece.data, piece.offset, piece.nextOffset, piece.eof }, { 'ady\n', 2, 6, false })
  editor.until_true(function()
    return #editor.processes(marker) > 0
  end, 'it is seen on the host')
  eq(e:call('confine/runs/wait', { runId = 'background', timeoutMs = 50 }).status, 'running')
  eq(e:call('confine/runs/kill', { runId = 'background' }).killed, true)
  eq(e:call('confine/runs/wait', { runId = 'background', timeoutMs = 20000 }).status, 'cancelled')
  eq(editor.processes(marker), {}, 'processes left')
end)

chapter('the server ends with the client', function()
  local marker = 'nvim-story-stop-' .. vim.fn.getpid()
  e:run({ command = ('exec -a %s sleep 600'):format(marker), background = true })
  editor.until_true(function()
    return #editor.processes(marker) > 0
  end, 'the background run is seen')
  eq(e:stop(), { code = 0, signal = 0 })
  editor.until_true(function()
    return #editor.processes(marker) == 0
  end, 'nothing is left', 2000)
end)

chapter('a question left unanswered runs nothing', function()
  local hasty = editor.start(workspace, { program = editor.need('CONFINE_HASTY_BIN') })
  local file = outside .. '/nvim-unanswered'
  denied(hasty, file, 'unanswered')
  local reply = escalate(hasty, 'unanswered')
  local question = hasty:next_question()
  local result = hasty:wait(reply, 20000)
  eq({ result.status, result.approval.outcome }, { 'refused', 'timed-out' })
  question:choose('allow_once')
  nothing_runs(hasty, file)
  hasty:stop()
end)

-- person stands in for Neovim's own list of choices: what it does not choose at
-- once it chooses when told to.
local function person()
  local self = { prompts = {} }
  vim.ui.select = function(items, opts, on_choice)
    assert(opts.format_item(items[1]):lower():find('refuse'), 'the first choice does not refuse')
    local prompt = { text = opts.prompt }
    function prompt.choose(pattern)
      on_choice(pattern and vim.iter(items):find(function(item)
        return item.title:lower():find(pattern) ~= nil
      end) or nil)
    end
    self.prompts[#self.prompts + 1] = prompt
  end
  function self.next()
    editor.until_true(function()
      return #self.prompts > 0
    end, 'the person is asked')
    return table.remove(self.prompts, 1)
  end
  return self
end

chapter('the stock prompt is enough', function()
  local stock, human = editor.start(workspace, { announce = false }), person()
  local file = outside .. '/nvim-stock'
  denied(stock, file, 'stock-1')
  local reply = escalate(stock, 'stock-1')
  local prompt = human.next()
  assert(prompt.text:find(file, 1, true), prompt.text)
  prompt.choose(nil) -- Escape
  one_of(stock:wait(reply).status, { 'refused', 'cancelled' })
  nothing_runs(stock, file)

  denied(stock, file, 'stock-2')
  reply = escalate(stock, 'stock-2')
  prompt = human.next()
  stock:cancel(reply)
  eq(stock:wait(reply).approval.outcome, 'cancelled')
  prompt.choose('once')
  nothing_runs(stock, file)

  denied(stock, file, 'stock-3')
  reply = escalate(stock, 'stock-3')
  human.next().choose('once')
  eq(stock:wait(reply).approval.outcome, 'allowed-once')
  eq(read(file), 'wide')
  eq(#human.prompts, 0, 'prompts too many')
  stock:stop()
end)

chapter('a stock prompt left unanswered runs nothing', function()
  local hasty, human = editor.start(workspace, { announce = false, program = editor.need('CONFINE_HASTY_BIN') }), person()
  local file = outside .. '/nvim-stock-unanswered'
  denied(hasty, file, 'unanswered')
  local reply = escalate(hasty, 'unanswered')
  local prompt = human.next()
  eq(hasty:wait(reply, 20000).approval.outcome, 'timed-out')
  prompt.choose('once')
  nothing_runs(hasty, file)
  hasty:stop()
end)

chapter('a killed server leaves nothing', function()
  local lost = editor.start(workspace)
  local marker = 'nvim-story-lost-' .. vim.fn.getpid()
  local file = outside .. '/' .. marker
  denied(lost, file, 'asked')
  escalate(lost, 'asked') -- never answered
  lost:next_question()
  lost:run({ command = ("(setsid bash -c 'exec -a %s sleep 600' &) ; exec -a %s sleep 600"):format(marker, marker), background = true })
  editor.until_true(function()
    return #editor.processes(marker) >= 2
  end, 'the background run is seen')
  lost:kill()
  editor.until_true(function()
    return #editor.processes(marker) == 0
  end, 'nothing is left', 2000)
  assert(not exists(file), file .. ' was written')
end)

io.write(('%d passed, %d failed\n'):format(passed, failed))
io.flush()
vim.cmd('cquit ' .. (failed == 0 and 0 or 1)) -- unlike os.exit, leaves no files behind
