--- Puts the parts together: servers by workspace folder, what they tell, and
--- requests about runs.
local M = {}

local protocol = require('confine.protocol')
local server = require('confine.server')
local runs = require('confine.runs')
local questions = require('confine.questions')
local event = require('confine.event')
local log = require('confine.log')

---@type table<string, confine.Server> by workspace folder; '' for none
local servers = {}

--- The mode that the person chose for what is run from now on; nil: as configured.
---@type confine.Mode?
M.mode = nil

questions.choose_view = function(asked)
  -- What does not fit into a message must not be asked by one.
  if require('confine.config').current.question == 'select' and (asked.question.unshown or 0) == 0 then
    return require('confine.ui.select')
  end
  return require('confine.ui.float')
end

--- Draws status lines anew: a component of ours may stand in one.
function M.redraw_status()
  vim.schedule(function()
    pcall(vim.cmd.redrawstatus, { bang = true })
  end)
end

runs.listen(function(_, piece)
  if not piece then
    M.redraw_status()
  end
end)

---@type confine.Handlers
local handlers = {
  question = function(from, question, answer)
    questions.add(from, question, answer)
    local run = runs.get(question.runId)
    if run then
      runs.set_waiting(run, true)
    end
  end,
  withdrawn = function(from, params)
    if questions.withdraw(from, params.id) then
      local why = params.reason == 'expired' and 'no answer in time' or 'it is not needed any more'
      log.tell('warn', 'the question was withdrawn, ' .. why)
    end
  end,
  output = function(_, piece)
    local run = runs.get(piece.runId)
    if run then
      -- Of a last piece that tells a gap only, the result has the end.
      local bytes = protocol.bytes(piece)
      if bytes ~= '' then
        runs.output(run, piece.stream, bytes, piece.skipped or 0)
      end
    end
  end,
  exit = function(_, result)
    local run = runs.get(result.runId)
    if run and not runs.ended(run) then
      runs.complete(run, result)
      runs.finish(run, nil, result)
      event.emit('ConfineRunEnd', { run = M.facts(run), result = result })
    end
  end,
  state = function(from)
    event.emit('ConfineStateChanged', { root = from.root, state = from.state, problem = from.problem })
    M.redraw_status()
  end,
  ended = function(from)
    questions.forget(from)
    for _, run in ipairs(runs.list()) do
      if run.server == from and not runs.ended(run) then
        M.fail(run, { kind = 'unavailable', message = 'the server ended, and the command with it' })
      end
    end
  end,
}

questions.on_settled = function(asked)
  local run = runs.get(asked.question.runId)
  if run and run.waiting then
    runs.set_waiting(run, false)
  end
end

--- What is told of a run: no references into the model.
---@param run confine.Run
---@return { id: string, command: string, cwd: string, root: string?, state: string, of: string? }
function M.facts(run)
  return { id = run.id, command = run.command, cwd = run.cwd, root = run.server.root, state = run.state, of = run.of }
end

---@param run confine.Run
---@param failure confine.Failure
function M.fail(run, failure)
  if not runs.ended(run) then
    runs.finish(run, failure)
    event.emit('ConfineRunEnd', { run = M.facts(run), error = failure })
  end
end

--- The server for a workspace folder. It is started by the first request.
---@param root string?
---@return confine.Server
function M.server(root)
  local key = root or ''
  if not servers[key] then
    servers[key] = server.new(root, handlers)
    M.watch_exit()
  end
  return servers[key]
end

--- The server for where the person works.
---@return confine.Server
function M.here()
  local workspace = require('confine.workspace')
  return M.server(workspace.find(workspace.here(), require('confine.config').current))
end

---@return confine.Server[]
function M.servers()
  return vim.tbl_values(servers)
end

local watching = false

--- Ends the servers with Neovim, which waits a moment for them: they end what
--- they run.
function M.watch_exit()
  if watching then
    return
  end
  watching = true
  vim.api.nvim_create_autocmd('VimLeavePre', {
    group = vim.api.nvim_create_augroup('confine.client', { clear = true }),
    callback = function()
      local function all_gone()
        return not vim.iter(servers):any(function(_, s)
          return s:alive()
        end)
      end
      for _, s in pairs(servers) do
        s:stop()
      end
      if not vim.wait(2000, all_gone, 10) then
        for _, s in pairs(servers) do
          s:terminate()
        end
        vim.wait(500, all_gone, 10)
      end
    end,
  })
end

--- Sends a request that runs something, and follows it.
---@param method string
---@param run confine.Run
---@param params table
---@param on_done fun(failure: confine.Failure?, result: confine.RunResult?)
---@return fun() cancel
function M.follow(method, run, params, on_done)
  event.emit('ConfineRunStart', { run = M.facts(run) })
  return run.server:request(method, params, function(failure, result)
    if failure then
      M.fail(run, failure)
    elseif result.status ~= 'running' and not runs.ended(run) then
      -- Such as the result of an earlier run, for which there is no exit of this one.
      runs.finish(run, nil, result)
      event.emit('ConfineRunEnd', { run = M.facts(run), result = result })
    end
    on_done(failure, result)
  end)
end

---@param run confine.Run
---@param on_done (fun(failure: confine.Failure?))?
function M.kill(run, on_done)
  run.server:request(protocol.send.kill, { runId = run.id }, on_done or function(failure)
    if failure then
      log.tell('error', failure.message)
    end
  end)
end

--- What was typed for a run and is not taken yet.
---@type table<string, string>
local typed = {}
--- Bytes of it from which on more is dropped.
local most_typed = 1024 * 1024

---@param run confine.Run
local function write(run)
  local bytes = typed[run.id]
  run.server:request(protocol.send.write, { runId = run.id, base64 = vim.base64.encode(bytes) }, function(failure, result)
    local taken = failure and #bytes or result.taken
    local rest = (typed[run.id] or ''):sub(taken + 1)
    typed[run.id] = rest ~= '' and not runs.ended(run) and rest or nil
    if typed[run.id] then -- more was typed meanwhile, or the command reads slowly
      vim.defer_fn(function()
        if typed[run.id] then
          write(run)
        end
      end, taken > 0 and 0 or 50)
    end
  end)
end

--- Gives a run what the person typed. What is typed before the command began, or
--- after it ended, is dropped.
---@param run confine.Run
---@param bytes string
function M.type(run, bytes)
  if runs.ended(run) or run.waiting or bytes == '' then
    return
  end
  local busy = typed[run.id] ~= nil
  if busy and #typed[run.id] > most_typed then
    return
  end
  typed[run.id] = (typed[run.id] or '') .. bytes
  if not busy then
    write(run)
  end
end

---@class confine.Approvals what decides later commands of one server
---@field server confine.Server
---@field approvals confine.Approval[]?
---@field failure confine.Failure? if there is no list

--- Asks the server for where the person works, and each other one that is there.
---@param on_done fun(all: confine.Approvals[])
function M.approvals(on_done)
  local here = M.here()
  local asked = { here }
  for _, other in ipairs(M.servers()) do
    if other ~= here and other:alive() then
      asked[#asked + 1] = other
    end
  end
  local all, missing = {}, #asked
  for i, of in ipairs(asked) do
    of:request(protocol.send.approvals, vim.empty_dict(), function(failure, result)
      all[i] = { server = of, approvals = result and result.approvals, failure = failure }
      missing = missing - 1
      if missing == 0 then
        on_done(all)
      end
    end)
  end
end

--- Ends what an answer of the person's means for later commands.
---@param of confine.Server
---@param id string
---@param on_done fun(failure: confine.Failure?)
function M.revoke(of, id, on_done)
  of:request(protocol.send.revoke, { id = id }, on_done)
end

---@param run confine.Run
---@param size confine.TerminalSize
function M.resize(run, size)
  run.server:request(protocol.send.resize, { runId = run.id, columns = size.columns, rows = size.rows }, function() end)
end

return M
