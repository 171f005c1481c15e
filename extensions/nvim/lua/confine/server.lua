--- One server process and the connection to it. There is one for each workspace
--- folder, so that what is granted in a project is granted there alone.
---
--- Framing and the process are Neovim's vim.lsp.rpc. The server is no client of
--- vim.lsp: it has no documents, and would be attached to buffers in Neovim 0.10.
local protocol = require('confine.protocol')
local log = require('confine.log')
local program = require('confine.program')

---@alias confine.ConnectionState
---| 'stopped' nothing runs; the next request starts it
---| 'starting'
---| 'ready'
---| 'waiting' it ended by itself, and is started again in a moment
---| 'failed' it ended too often, or cannot be started

---@class confine.Failure what became of a request that has no result
---@field message string
---@field kind 'server'|'unavailable'|'invalid'|'cancelled' server: it answered with an error; invalid: it was not sent
---@field code integer? of the protocol
---@field data confine.FailureData?

---@class confine.Handlers
---@field question fun(server: confine.Server, question: confine.Question, answer: fun(reply: confine.ApprovalAnswer))
---@field withdrawn fun(server: confine.Server, params: confine.ApprovalWithdrawn)
---@field output fun(server: confine.Server, piece: confine.Output)
---@field exit fun(server: confine.Server, result: confine.RunResult)
---@field state fun(server: confine.Server)
---@field ended fun(server: confine.Server) the process is gone, with all that it was doing

---@class confine.Request one that waits for an answer
---@field method string
---@field params table?
---@field settle fun(failure: confine.Failure?, result: any)
---@field done boolean
---@field id integer? on the wire

---@class confine.Server
---@field root string? the workspace folder
---@field state confine.ConnectionState
---@field problem string? why it failed
---@field program confine.Program?
---@field capabilities confine.Capabilities? as they were told last
---@field package handlers confine.Handlers
---@field package rpc vim.lsp.rpc.PublicClient?
---@field package life table? made anew with each process, so that an old one is not listened to
---@field package queue confine.Request[] waiting for the server to be ready
---@field package pending table<confine.Request, true>
---@field package ends integer how often it ended by itself in a row
---@field package started_at integer milliseconds
---@field package timer uv.uv_timer_t?
---@field package stopping boolean
local Server = {}
Server.__index = Server

local M = {}

--- Milliseconds before it is started again, one for each end in a row.
M.delays = { 500, 1000, 2000, 4000, 8000 }
--- Milliseconds after which an end is not counted with those before.
M.steady = 60000
--- Milliseconds in which the server must have answered `initialize`.
M.patience = 15000

---@param root string?
---@param handlers confine.Handlers
---@return confine.Server
function M.new(root, handlers)
  return setmetatable({
    root = root,
    state = 'stopped',
    handlers = handlers,
    queue = {},
    pending = {},
    ends = 0,
    started_at = 0,
    stopping = false,
  }, Server)
end

---@param state confine.ConnectionState
---@param problem string?
function Server:set_state(state, problem)
  self.state, self.problem = state, problem
  self.handlers.state(self)
end

--- after runs fn in ms milliseconds, instead of what was to be run before.
function Server:after(ms, fn)
  self:forget_timer()
  self.timer = vim.defer_fn(function()
    self.timer = nil
    fn()
  end, ms)
end

function Server:forget_timer()
  if self.timer and not self.timer:is_closing() then
    self.timer:stop()
    self.timer:close()
  end
  self.timer = nil
end

--- Starts the process, unless it runs or is about to.
function Server:start()
  if self.state == 'starting' or self.state == 'ready' then
    return
  end
  self:forget_timer()
  self.stopping = false
  local life = {}
  self.life = life
  self:set_state('starting')
  local config = require('confine.config').current
  local command, problem = program.find(config, self.root)
  if not command then
    return vim.schedule(function()
      if self.life == life then
        self:fail(problem --[[@as string]])
      end
    end)
  end
  program.check(command, function(not_usable, found)
    if self.life ~= life then
      return
    elseif not_usable then
      self:fail(not_usable)
    else
      self.program = found
      self:spawn(life, found --[[@as confine.Program]], config)
    end
  end)
end

---@param life table
---@param found confine.Program
---@param config confine.Config
function Server:spawn(life, found, config)
  local command = vim.list_extend(vim.list_slice(found.command), { 'serve' })
  if config.log_server then
    vim.list_extend(command, { '--log', log.server_path() })
  end
  local ok, rpc = pcall(vim.lsp.rpc.start, command, self:dispatchers(life))
  if not ok then
    return self:fail('the server cannot be started: ' .. tostring(rpc))
  end
  self.rpc, self.started_at = rpc, vim.uv.now()
  self:after(M.patience, function()
    if self.life == life and self.state == 'starting' then
      rpc.terminate()
      self:fail(('the server did not answer within %d s'):format(M.patience / 1000))
    end
  end)
  local params = protocol.initialize_params('confine.nvim', tostring(vim.version()), self.root, config.settings)
  rpc.request(protocol.send.initialize, params, function(err, result)
    if self.life ~= life then
      return
    end
    local theirs = not err and vim.tbl_get(result or {}, 'capabilities', 'experimental', 'confine', 'protocolVersion')
    if theirs ~= protocol.version then
      rpc.terminate()
      return self:fail(err and ('the server did not begin: ' .. tostring(err.message)) or 'the server speaks another version of the protocol')
    end
    self:forget_timer()
    rpc.notify(protocol.send.initialized, vim.empty_dict())
    log.write('info', ('server %s for %s is ready'):format(found.version, self.root or 'no folder'))
    self:set_state('ready')
    self:ask_capabilities()
    local queue = self.queue
    self.queue = {}
    for _, request in ipairs(queue) do
      if not request.done then
        self:send(request)
      end
    end
  end)
end

---@param life table
---@return vim.lsp.rpc.Dispatchers
function Server:dispatchers(life)
  local handlers, receive = self.handlers, protocol.receive
  local function current()
    return self.life == life
  end
  local notified = {
    [receive.output] = handlers.output,
    [receive.exit] = handlers.exit,
    [receive.withdrawn] = handlers.withdrawn,
    [receive.capabilities_changed] = function()
      self:ask_capabilities()
    end,
    [receive.log] = function(_, params)
      log.write('info', 'server: ' .. tostring(params.message))
    end,
  }
  return {
    notification = function(method, params)
      local handle = notified[method]
      if handle and current() and type(params) == 'table' then
        handle(self, protocol.without_null(params))
      end
    end,
    server_request = function(method, params)
      if method ~= receive.question or not current() then
        return nil, { code = protocol.codes.method_not_found, message = 'not known: ' .. tostring(method) }
      end
      local waiting = coroutine.running()
      local answered = false
      local function answer(reply)
        if not answered then
          answered = true
          vim.schedule(function()
            coroutine.resume(waiting, reply)
          end)
        end
      end
      local ok, problem = pcall(handlers.question, self, protocol.without_null(params), answer)
      if not ok then
        log.write('error', 'a question could not be shown: ' .. tostring(problem))
        answer(protocol.cancelled())
      end
      return coroutine.yield()
    end,
    on_error = function(code, problem)
      log.write('error', ('connection: error %s: %s'):format(code, type(problem) == 'string' and problem or vim.inspect(problem)))
    end,
    on_exit = function(code, signal)
      vim.schedule(function()
        if current() then
          self:ended(code, signal)
        end
      end)
    end,
  }
end

--- gone forgets the process and settles what waited for it.
---@param message string
function Server:gone(message)
  self.rpc, self.life, self.capabilities = nil, nil, nil
  self:forget_timer()
  local pending = self.pending
  self.pending = {}
  self.handlers.ended(self)
  for request in pairs(pending) do
    request.settle({ kind = 'unavailable', message = message })
  end
end

---@param code integer
---@param signal integer
function Server:ended(code, signal)
  local how = signal ~= 0 and ('signal %d'):format(signal) or ('exit status %d'):format(code)
  if self.stopping then
    self:gone('the server was stopped')
    self.stopping = false
    log.write('info', 'server stopped, ' .. how)
    return self:set_state('stopped')
  end
  self.ends = vim.uv.now() - self.started_at > M.steady and 1 or self.ends + 1
  local delay = M.delays[self.ends]
  self:gone(('the server ended unexpectedly (%s); the command was ended with it'):format(how))
  if not delay then
    return self:fail(('the server ended %d times in a row, last with %s'):format(self.ends, how))
  end
  log.tell('warn', ('the server ended unexpectedly (%s); it is started again'):format(how))
  self:set_state('waiting')
  self:after(delay, function()
    self:start()
  end)
end

---@param problem string
function Server:fail(problem)
  self:gone(problem)
  local queue = self.queue
  self.queue = {}
  self:set_state('failed', problem)
  log.tell('error', problem .. '; :Confine restart tries again')
  for _, request in ipairs(queue) do
    request.settle({ kind = 'unavailable', message = problem })
  end
end

function Server:ask_capabilities()
  self:request(protocol.send.capabilities, { wait = true }, function(failure, capabilities)
    if not failure then
      self.capabilities = capabilities
      self.handlers.state(self)
    end
  end)
end

---@param request confine.Request
function Server:send(request)
  local sent, id = false, nil
  if self.rpc then
    sent, id = self.rpc.request(request.method, request.params, function(err, result)
      if err then
        request.settle({ kind = 'server', message = tostring(err.message), code = err.code, data = protocol.without_null(err.data) })
      else
        request.settle(nil, protocol.without_null(result))
      end
    end)
  end
  if sent then
    request.id = id
    self.pending[request] = true
  else
    request.settle({ kind = 'unavailable', message = 'the server is gone' })
  end
end

--- Sends a request, when the server is ready; starts it if need be. on_done is
--- called once, later, whatever happens. The function that is returned cancels:
--- the answer then says what became of it.
---@param method string
---@param params table?
---@param on_done fun(failure: confine.Failure?, result: any)
---@return fun() cancel
function Server:request(method, params, on_done)
  ---@type confine.Request
  local request = { method = method, params = params, done = false, settle = function() end }
  function request.settle(failure, result)
    if request.done then
      return
    end
    request.done = true
    self.pending[request] = nil
    vim.schedule(function()
      on_done(failure, result)
    end)
  end
  local bad = protocol.not_text(params)
  if bad then
    request.settle({ kind = 'invalid', message = ('%s is not UTF-8, and nothing else can be sent'):format(bad) })
  elseif self.state == 'failed' then
    request.settle({ kind = 'unavailable', message = self.problem or 'the server failed' })
  elseif self.state == 'ready' then
    self:send(request)
  else
    self.queue[#self.queue + 1] = request
    if self.state == 'stopped' and not self.stopping then
      self:start()
    end
  end
  return function()
    if request.done then
      return
    elseif request.id and self.rpc then
      self.rpc.notify(protocol.send.cancel, { id = request.id })
    else
      request.settle({ kind = 'cancelled', message = 'cancelled before it was sent' })
    end
  end
end

--- Asks the server to end, which ends all that it runs.
function Server:stop()
  if not self.rpc then
    if self.state ~= 'stopped' then
      self:gone('the server was stopped')
      self:set_state('stopped')
    end
    return
  end
  local rpc = self.rpc
  self.stopping = true
  rpc.request(protocol.send.shutdown, nil, function() end)
  rpc.notify(protocol.send.exit)
  self:after(5000, function()
    if self.rpc == rpc then
      rpc.terminate()
    end
  end)
end

--- Ends the process and starts another one.
function Server:restart()
  self.ends = 0
  self:stop()
  local function begin()
    if self.stopping then
      return vim.defer_fn(begin, 20)
    end
    self:start()
  end
  begin()
end

--- Forgets that it failed, since the reason may be gone.
function Server:forgive()
  if self.state == 'failed' then
    self.ends = 0
    self:set_state('stopped')
  end
end

--- Whether a process is there.
---@return boolean
function Server:alive()
  return self.rpc ~= nil
end

--- Ends the process at once, with what it runs.
function Server:terminate()
  if self.rpc then
    self.rpc.terminate()
  end
end

return M
