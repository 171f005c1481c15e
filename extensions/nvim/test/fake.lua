-- A server that does what the test says:  nvim --clean -l fake.lua version|serve
-- The command of runCommand is Lua, run here with the functions below. What the
-- client answers to questions becomes the modelText of the run.
local function send(message)
  message.jsonrpc = '2.0'
  local body = vim.json.encode(message)
  io.stdout:write(('Content-Length: %d\r\n\r\n%s'):format(#body, body))
  io.stdout:flush()
end

local function receive()
  local length
  while true do
    local line = io.stdin:read('*l')
    if not line then
      return nil
    end
    line = line:gsub('\r$', '')
    if line == '' then
      break
    end
    length = tonumber(line:match('^Content%-Length: (%d+)$')) or length
  end
  return vim.json.decode(io.stdin:read(length), { luanil = { object = true } })
end

if arg[1] == 'version' then
  io.stdout:write(vim.json.encode({ version = 'fake', protocolVersion = tonumber(vim.env.FAKE_PROTOCOL) or 1 }))
  os.exit(0)
end
if vim.env.FAKE_START == 'exit' then
  os.exit(5)
end

-- capabilities is what a machine says on which nothing can be confined.
local changed_mode
local function capabilities(mode)
  return {
    protocolVersion = 1, version = 'fake', state = 'ready', ok = false, mode = mode, provider = 'none', canAsk = true, stdinOpen = true, pty = false,
    problems = { 'no provider can be used: install bubblewrap' }, settingsProblems = {}, hints = {}, roots = {}, refusedRoots = {}, settings = {}, limits = {},
    providers = { { provider = 'landlock', usable = false, reason = 'the kernel has none' } }, tool = { name = 'bash', description = '', inputSchema = {}, arguments = {} },
  }
end

local answers = {} -- what to do with the answer to each question
local current, run_id
local api = {}

function api.send(method, params)
  send({ method = method, params = params })
end

function api.change_mode(mode)
  changed_mode = mode
  send({ method = 'confine/capabilitiesChanged', params = { state = 'ready' } })
end

function api.exit(code)
  os.exit(code)
end

function api.reply(more)
  local empty = { text = '', bytes = 0, truncated = false }
  send({
    id = current,
    result = vim.tbl_extend('force', {
      runId = run_id, status = 'completed', exitCode = 0, timedOut = false, durationMs = 1, effectiveTimeoutMs = 1000,
      stdout = empty, stderr = empty, droppedEnv = vim.empty_dict(), policyHash = '', modelText = '',
    }, more or {}),
  })
end

-- ask asks a question; its answer becomes the result of the run.
function api.ask(question)
  question.runId = run_id
  local request, run = current, run_id
  send({ id = 'question-' .. question.id, method = 'confine/requestApproval', params = question })
  answers['question-' .. question.id] = function(message)
    current, run_id = request, run
    api.reply({ modelText = vim.json.encode(message.result or message.error) })
  end
end

for message in receive do
  if message.method == 'initialize' then
    send({ id = message.id, result = { serverInfo = { name = 'fake' }, capabilities = { experimental = { confine = { protocolVersion = 1, state = 'ready' } } } } })
  elseif message.method == 'runCommand' then
    current, run_id = message.id, message.params.runId
    local chunk = assert(load(message.params.command, 'command', 't', setmetatable(api, { __index = _G })))
    chunk()
  elseif message.method == 'shutdown' then
    send({ id = message.id, result = vim.NIL })
  elseif message.method == 'exit' then
    os.exit(0)
  elseif message.method == 'capabilities' then
    local mode = changed_mode or vim.env.FAKE_MODE
    if not mode then
      send({ id = message.id, error = { code = -32601, message = 'the fake has none' } })
    else
      send({ id = message.id, result = capabilities(mode) })
    end
  elseif message.method == '$/cancelRequest' then
    api.reply({ status = 'cancelled' })
  elseif answers[message.id] then
    answers[message.id](message)
  end
end
