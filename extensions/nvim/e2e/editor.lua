-- A small editor on Neovim's own language client: it starts confine, keeps what
-- it is told in order, and lets the story answer questions when it likes.
-- Works on Neovim 0.10 and newer.
local M = {}

local v11 = vim.fn.has('nvim-0.11') == 1

function M.need(name)
  return vim.env[name] or error(name .. ' is not set; start the story with .ci/story')
end

-- until_true returns once holds() is true, and fails after ms milliseconds.
function M.until_true(holds, what, ms)
  if not vim.wait(ms or 20000, holds, 5) then
    error(('waited %d ms until %s'):format(ms or 20000, what), 2)
  end
end

-- processes lists the ids of all processes of this machine with text on their command line.
function M.processes(text)
  local found = {}
  for name in vim.fs.dir('/proc') do
    local pid = tonumber(name)
    local file = pid and pid ~= vim.fn.getpid() and io.open('/proc/' .. name .. '/cmdline', 'rb')
    if file then
      local line = file:read('*a')
      file:close()
      if line and line:find(text, 1, true) then
        found[#found + 1] = pid
      end
    end
  end
  return found
end

local Editor = {}
Editor.__index = Editor

-- ask keeps a question and holds its reply back until the story gives one.
function Editor:ask(params)
  local co = coroutine.running()
  self.questions[#self.questions + 1] = {
    params = params,
    answer = function(reply)
      vim.schedule(function()
        coroutine.resume(co, reply)
      end)
    end,
    choose = function(question, kind)
      for _, option in ipairs(params.options) do
        if option.kind == kind then
          return question.answer({ outcome = { outcome = 'selected', optionId = option.optionId } })
        end
      end
      error('the question has no option to ' .. kind)
    end,
  }
  return coroutine.yield()
end

-- next_question waits for the next question and takes it.
function Editor:next_question()
  M.until_true(function()
    return #self.questions > 0
  end, 'a question is asked')
  return table.remove(self.questions, 1)
end

-- start starts a server for folder. Options: announce = false makes a stock
-- client; program is the server, CONFINE_BIN if not given.
function M.start(folder, options)
  options = options or {}
  local self = setmetatable({ events = {}, questions = {}, pid_file = vim.fn.tempname() }, Editor)
  local capabilities = vim.lsp.protocol.make_client_capabilities()
  local handlers = {}
  for _, method in ipairs({ 'confine/output', 'confine/exit', 'confine/approvalWithdrawn', 'confine/capabilitiesChanged' }) do
    handlers[method] = function(_, params)
      self.events[#self.events + 1] = { method = method, params = params }
    end
  end
  if options.announce ~= false then
    capabilities.experimental = { confine = { protocolVersion = 1, approval = true, output = true } }
    handlers['confine/requestApproval'] = function(_, params)
      return self:ask(params)
    end
  end
  local id = vim.lsp.start({
    name = 'confine',
    -- The client does not tell the server's process id.
    cmd = { 'sh', '-c', 'echo $$ > "$0"; exec "$1" serve', self.pid_file, options.program or M.need('CONFINE_BIN') },
    root_dir = folder,
    capabilities = capabilities,
    handlers = handlers,
    on_exit = function(code, signal)
      self.exited = { code = code, signal = signal }
    end,
  }, {
    attach = false,
    reuse_client = function()
      return false
    end,
  })
  self.client = vim.lsp.get_client_by_id(assert(id, 'the server did not start'))
  M.until_true(function()
    return self.client.initialized == true
  end, 'the server is initialized')
  self.pid = tonumber(vim.fn.readfile(self.pid_file)[1])
  return self
end

-- request sends a request and returns it: done, err and result are set when it is answered.
function Editor:request(method, params)
  local request = {}
  local function answered(err, result)
    request.done, request.err, request.result = true, err, result
    self.events[#self.events + 1] = { response = method, result = result }
  end
  local sent
  if v11 then
    sent, request.id = self.client:request(method, params, answered)
  else
    sent, request.id = self.client.request(method, params, answered)
  end
  assert(sent, 'the client could not send ' .. method)
  return request
end

function Editor:cancel(request)
  if v11 then
    self.client:cancel_request(request.id)
  else
    self.client.cancel_request(request.id)
  end
end

-- wait returns the result of a request, which must not be an error.
function Editor:wait(request, ms)
  M.until_true(function()
    return request.done
  end, 'a request is answered', ms or 330000)
  if request.err then
    error('answered by an error: ' .. vim.inspect(request.err), 2)
  end
  return request.result
end

function Editor:call(method, params)
  return self:wait(self:request(method, params))
end

function Editor:run(params)
  return self:call('runCommand', type(params) == 'string' and { command = params } or params)
end

-- told lists the params of every notification of a method about a run.
function Editor:told(method, run_id)
  local found = {}
  for _, event in ipairs(self.events) do
    if event.method == method and (not run_id or event.params.runId == run_id) then
      found[#found + 1] = event.params
    end
  end
  return found
end

-- stop ends the server as Neovim does and returns its exit status.
function Editor:stop()
  if v11 then
    self.client:stop()
  else
    self.client.stop()
  end
  return self:wait_exit()
end

function Editor:kill()
  vim.uv.kill(self.pid, 'sigkill')
  return self:wait_exit()
end

function Editor:wait_exit()
  M.until_true(function()
    return self.exited ~= nil
  end, 'the server exits')
  return self.exited
end

return M
