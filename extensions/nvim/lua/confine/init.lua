--- confine: runs shell commands in a sandbox, and asks you before anything wider.
--- This is what other plugins may call; |confine-api| describes it.
local M = {}

local protocol = require('confine.protocol')

--- Sets the options, see |confine-options|. Not needed for the defaults. What is
--- wrong is an error, and then nothing is changed.
---@param options table?
function M.setup(options)
  require('confine.config').set(options)
  if package.loaded['confine.client'] then
    for _, server in ipairs(require('confine.client').servers()) do
      server:forgive()
    end
  end
end

---@class confine.RunOptions
---@field cwd string? where it runs, absolute; default: the folder of the current window
---@field root string? the workspace folder; default: found from the folder of the current window. Never take it from a model
---@field env table<string, string>?
---@field stdin string?
---@field timeout_ms integer?
---@field mode confine.Mode? a narrower mode than is configured
---@field network boolean?
---@field session string? opaque; what has the same one shares /tmp, grants and background runs
---@field background boolean? answer when it has begun; on_exit tells the end
---@field permissions confine.Mode? ask the person for this wider mode, for this one call
---@field justification string? one sentence for the person; required with permissions
---@field pty boolean? give it a terminal; what is typed in its window is its input
---@field on_output fun(bytes: string, stream: confine.Stream)? called while it runs
---@field on_exit fun(result: confine.RunResult)? called when it has ended, also of a background run
---@field show boolean? open the output window

--- Bytes of a command that are kept to show it in lists and above its output. A
--- question has all of it.
local most_shown = 4096

local run_options = {
  cwd = 'string',
  root = 'string',
  env = 'table',
  stdin = 'string',
  timeout_ms = 'number',
  mode = 'string',
  network = 'boolean',
  session = 'string',
  background = 'boolean',
  permissions = 'string',
  justification = 'string',
  pty = 'boolean',
  on_output = 'function',
  on_exit = 'function',
  show = 'boolean',
}

---@param command any
local function is_command(command)
  if type(command) == 'string' then
    return command ~= ''
  end
  return type(command) == 'table' and vim.islist(command) and #command > 0 and vim.iter(command):all(function(word)
    return type(word) == 'string'
  end)
end

---@param options table
local function check_run_options(options)
  for name, value in pairs(options) do
    local wanted = run_options[name]
    if not wanted then
      local names = vim.tbl_keys(run_options)
      table.sort(names)
      error(('confine.run: unknown option %s; there are: %s'):format(tostring(name), table.concat(names, ', ')), 3)
    elseif type(value) ~= wanted then
      error(('confine.run: %s must be a %s, not a %s'):format(name, wanted, type(value)), 3)
    end
  end
end

---@class confine.Handle
---@field id string of the run
---@field cancel fun() ends the command, or the wait for it; on_done is still called

--- Follows what a run prints and how it ends, for the caller.
---@param run confine.Run
---@param options confine.RunOptions
local function attach(run, options)
  if not options.on_output and not options.on_exit then
    return
  end
  local runs = require('confine.runs')
  local stop
  stop = runs.listen(function(changed, piece)
    if changed ~= run then
      return
    end
    if piece and piece.bytes ~= '' and options.on_output then
      options.on_output(piece.bytes, piece.stream)
    end
    if runs.ended(run) then
      stop()
      if options.on_exit and run.result then
        options.on_exit(run.result)
      end
    end
  end)
end

--- Opens the output window if that is wanted. It may be impossible where Neovim is
--- now, and an autocommand of the person's may fail; the command runs all the same.
---@param run confine.Run
---@param options { show: boolean? }
local function show(run, options)
  if not options.show then
    return
  end
  local ok, problem = pcall(require('confine.ui.output').open, run)
  if not ok then
    require('confine.log').tell('warn', ('the output of %s is not shown (:Confine runs has it): %s'):format(run.id, problem))
  end
end

--- Runs a command in the sandbox. A string is given to bash, a list is a program
--- and its arguments. Comes back at once.
---
--- on_done is called once, later, in the main loop. failure is set if there is no
--- result: confine or its sandbox failed, or the request was wrong. A command that
--- fails, and one that was refused, has a result; result.modelText is what to show
--- to a model.
---@param command string|string[]
---@param options confine.RunOptions?
---@param on_done (fun(failure: confine.Failure?, result: confine.RunResult?))?
---@return confine.Handle
function M.run(command, options, on_done)
  options = options or {}
  if not is_command(command) then
    error('confine.run: the command must be a text, or a list of program and arguments', 2)
  end
  check_run_options(options)
  local client = require('confine.client')
  local workspace = require('confine.workspace')
  local text = require('confine.text')
  local here = workspace.here()
  local root = options.root and (vim.uv.fs_realpath(options.root) or options.root)
    or workspace.find(here, require('confine.config').current)
  local cwd = options.cwd or here
  local shown = type(command) == 'string' and command or table.concat(vim.tbl_map(text.quoted, command), ' ')
  local run = require('confine.runs').add({ server = client.server(root), command = text.visible(text.bounded(shown, most_shown)), cwd = cwd, pty = options.pty })
  local mode = options.mode
  if client.mode and (not mode or protocol.within(client.mode, mode)) then
    mode = client.mode
  end
  ---@type confine.RunCommandParams
  local params = {
    runId = run.id,
    command = type(command) == 'string' and command or nil,
    argv = type(command) == 'table' and command or nil,
    cwd = cwd,
    env = options.env and next(options.env) and options.env or nil,
    stdin = options.stdin,
    timeoutMs = options.timeout_ms,
    mode = mode,
    network = options.network,
    session = options.session,
    background = options.background,
    sandboxPermissions = options.permissions,
    justification = options.justification,
    pty = options.pty and require('confine.ui.terminal').size() or nil,
  }
  attach(run, options)
  local cancel = client.follow(protocol.send.run, run, params, on_done or function() end)
  show(run, options)
  return {
    id = run.id,
    cancel = function()
      if options.background and run.state == 'running' then
        client.kill(run)
      else
        cancel()
      end
    end,
  }
end

---@class confine.EscalateOptions
---@field mode confine.Mode? the wider mode; default: the narrowest step that would help
---@field additional confine.Additional? exactly what to add, instead of a mode
---@field justification string? one sentence for the person
---@field show boolean?
---@field on_output fun(bytes: string, stream: confine.Stream)?
---@field on_exit fun(result: confine.RunResult)?

--- Asks the person whether a command that ran may run again, wider. Without mode
--- and additional it asks for what the server named as the narrowest step.
---@param run_id string
---@param options confine.EscalateOptions?
---@param on_done (fun(failure: confine.Failure?, result: confine.RunResult?))?
---@return confine.Handle? handle nil if there is nothing to ask for
---@return string? problem
function M.escalate(run_id, options, on_done)
  options = options or {}
  local runs = require('confine.runs')
  local run = runs.get(run_id)
  if not run then
    return nil, 'there is no run ' .. run_id
  elseif not runs.ended(run) then
    return nil, run_id .. ' still runs'
  elseif not options.mode and not options.additional and not runs.can_escalate(run) then
    return nil, 'nothing that can be asked for would help ' .. run_id
  end
  local hint = run.result and run.result.escalation
  local additional, mode = options.additional, options.mode
  if not additional and not mode and hint then
    additional = hint.additional
    mode = not additional and hint.targets[1] or nil
  end
  local again = runs.add({ server = run.server, command = run.command, cwd = run.cwd, of = run.id, pty = run.pty })
  ---@type confine.EscalationParams
  local params = {
    runId = run.id,
    newRunId = again.id,
    additional = additional,
    sandboxPermissions = mode,
    justification = options.justification or 'Asked for in Neovim, after the sandbox refused it.',
  }
  attach(again, options --[[@as confine.RunOptions]])
  local cancel = require('confine.client').follow(protocol.send.escalate, again, params, on_done or function() end)
  show(again, options)
  return { id = again.id, cancel = cancel }
end

--- The shell tool for an agent: name, description, inputSchema, arguments, as the
--- server describes it. It may change; ask again when |ConfineStateChanged| comes.
---@param on_done fun(failure: confine.Failure?, tool: confine.Tool?)? called once, later
---@return confine.Tool? tool at once, if it is known already
function M.tool(on_done)
  local server = require('confine.client').here()
  if on_done then
    server:request(protocol.send.capabilities, { wait = true }, function(failure, capabilities)
      on_done(failure, capabilities and capabilities.tool)
    end)
  end
  return server.capabilities and vim.deepcopy(server.capabilities.tool)
end

--- Runs what a model called the tool with. on_done gets the text for the model,
--- whatever happened, and the result if there is one.
---@param arguments table<string, any> as the model gave them
---@param options confine.RunOptions? session, on_output and the like; they win over the model's
---@param on_done fun(model_text: string, result: confine.RunResult?)
---@return confine.Handle
function M.call_tool(arguments, options, on_done)
  local handle = { id = '', cancel = function() end }
  local cancelled = false
  handle.cancel = function()
    cancelled = true
  end
  M.tool(function(failure, tool)
    if failure or not tool then
      return on_done('Error: ' .. (failure and failure.message or 'the tool is not known'))
    elseif cancelled then
      return on_done('Error: cancelled before it began.')
    end
    local ours = require('confine.tool').options(tool, arguments)
    if type(ours) == 'string' then
      return on_done('Error: ' .. ours)
    end
    local ok, started = pcall(M.run, ours.command, vim.tbl_extend('force', ours.options, options or {}), function(failed, result)
      on_done(failed and ('Error: ' .. failed.message) or result and result.modelText or 'Error: no result', result)
    end)
    if not ok then
      return on_done('Error: ' .. tostring(started))
    end
    handle.id, handle.cancel = started.id, started.cancel
  end)
  return handle
end

--- What is known of runs, newest first.
---@return table[]
function M.runs()
  return vim.tbl_map(require('confine.client').facts, require('confine.runs').list())
end

--- What the server for the current folder can enforce. Starts it.
---@param on_done fun(failure: confine.Failure?, capabilities: confine.Capabilities?)
function M.capabilities(on_done)
  require('confine.client').here():request(protocol.send.capabilities, { wait = true }, on_done)
end

--- For a status line: mode, running commands, waiting questions. Empty until a
--- server was started; starts none.
---@return string
function M.statusline()
  return require('confine.statusline').text()
end

return M
