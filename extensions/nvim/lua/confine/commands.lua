--- :Confine and what can stand behind it.
local M = {}

local log = require('confine.log')
local protocol = require('confine.protocol')
local runs = require('confine.runs')

---@param message string
local function complain(message)
  log.notify('error', message)
end

---@param message string
local function say(message)
  log.notify('info', message)
end

--- What is done when a run was answered, for a person who asked for it here.
---@param id string
local function after(id)
  return function(failure, result)
    local run = runs.get(id)
    if require('confine.config').current.output == 'none' and run then
      say(('%s: %s'):format(id, failure and failure.message or runs.outcome(run)))
    elseif failure and failure.kind == 'server' and not result then
      complain(failure.message)
    end
  end
end

---@param command string
---@param pty boolean
local function run(command, pty)
  local show = pty or require('confine.config').current.output == 'split'
  local handle
  handle = require('confine').run(command, { show = show, pty = pty }, function(...)
    after(handle.id)(...)
  end)
end

--- Asks for what was refused: of a run, or of the newest that can get it.
---@param words string[] run id and mode, in any order, each may be missing
function M.escalate(words)
  local id, mode
  for _, word in ipairs(words) do
    if vim.tbl_contains(protocol.modes, word) then
      mode = word
    else
      id = word
    end
  end
  if not id then
    local newest = runs.newest(mode and runs.ended or runs.can_escalate)
    if not newest then
      return complain('no run was refused what can be asked for')
    end
    id = newest.id
  end
  local handle, problem
  handle, problem = require('confine').escalate(id, {
    mode = mode,
    show = require('confine.config').current.output == 'split',
    justification = 'You asked for it in Neovim, by :Confine escalate.',
  }, function(...)
    after(handle.id)(...)
  end)
  if not handle then
    complain(problem --[[@as string]])
  end
end

---@param id string?
local function kill(id)
  local found
  if id then
    found = runs.get(id)
    if not found or runs.ended(found) then
      return complain(found and (id .. ' has ended already') or ('there is no run ' .. id))
    end
  else
    found = runs.newest(function(r)
      return not runs.ended(r)
    end)
    if not found then
      return complain('nothing runs')
    end
  end
  require('confine.client').kill(found)
end

--- Shows or changes the mode of what is run from now on. Only to a narrower one:
--- anything wider is a question, for one command.
---@param wanted string?
local function mode(wanted)
  local client = require('confine.client')
  if wanted == 'configured' then
    client.mode = nil
  elseif wanted and not vim.tbl_contains(protocol.modes, wanted) then
    return complain(('there is no mode %s; there are: %s, or configured'):format(wanted, table.concat(protocol.modes, ', ')))
  end
  require('confine').capabilities(function(failure, capabilities)
    if failure or not capabilities then
      return complain(failure and failure.message or 'the server did not answer')
    end
    if wanted and wanted ~= 'configured' then
      if not protocol.within(wanted, capabilities.mode) then
        return complain(('%s is wider than %s, which is configured. Widen it in the settings of confine, or for one command by :Confine escalate'):format(wanted, capabilities.mode))
      end
      client.mode = wanted
    end
    local current = client.mode and protocol.within(client.mode, capabilities.mode) and client.mode or capabilities.mode
    say(('mode %s (configured: %s)'):format(current, capabilities.mode))
    require('confine.event').emit('ConfineStateChanged', { root = client.here().root, state = client.here().state, mode = current })
    vim.cmd.redrawstatus()
  end)
end

local function doctor()
  local server = require('confine.client').here()
  require('confine').capabilities(function(failure, capabilities)
    if failure or not capabilities then
      return complain(failure and failure.message or 'the server did not answer')
    end
    require('confine.ui.doctor').open(server, capabilities)
  end)
end

local function open_log()
  if not vim.uv.fs_stat(log.path()) then
    log.write('info', 'the log was opened')
  end
  -- A line of the log can hold what others wrote, such as the name of a folder: it must set no options.
  local modeline = vim.go.modeline
  vim.go.modeline = false
  local ok, problem = pcall(vim.cmd.split, { args = { vim.fn.fnameescape(log.path()) } })
  vim.go.modeline = modeline
  if not ok then
    return complain(tostring(problem))
  end
  vim.bo.modeline = false -- when it is read again, too
  vim.bo.autoread = true
  vim.bo.modifiable = false
  vim.cmd('normal! G')
end

--- Each gets the words behind its name, the text behind it as it was typed, and
--- the arguments of the user command.
---@type table<string, fun(words: string[], rest: string, args: table)>
local subcommands = {
  run = function(_, rest, args)
    if rest ~= '' then
      return run(rest, args.bang)
    elseif args.range > 0 then
      return run(table.concat(vim.api.nvim_buf_get_lines(0, args.line1 - 1, args.line2, false), '\n'), args.bang)
    end
    vim.ui.input({ prompt = 'Run in the sandbox: ', completion = "customlist,v:lua.require'confine.completion'.prompt" }, function(typed)
      if typed and vim.trim(typed) ~= '' then
        run(typed, args.bang)
      end
    end)
  end,
  escalate = function(words)
    M.escalate(words)
  end,
  runs = function()
    require('confine.ui.list').open()
  end,
  approvals = function()
    require('confine.ui.approvals').open()
  end,
  kill = function(words)
    kill(words[1])
  end,
  mode = function(words)
    mode(words[1])
  end,
  doctor = doctor,
  log = open_log,
  restart = function()
    require('confine.client').here():restart()
  end,
  answer = function()
    if not require('confine.questions').focus() then
      say('no question waits')
    end
  end,
}

---@param args table of the user command
function M.run_command(args)
  local name, rest = args.args:match('^(%S+)%s*(.*)$')
  local subcommand = subcommands[name]
  if not subcommand then
    return complain(('there is no :Confine %s; there are: %s'):format(name, table.concat(M.names(), ', ')))
  end
  local ok, problem = pcall(subcommand, vim.split(rest, '%s+', { trimempty = true }), rest, args)
  if not ok then
    complain(tostring(problem))
  end
end

---@return string[]
function M.names()
  local names = vim.tbl_keys(subcommands)
  table.sort(names)
  return names
end

---@param lead string
---@param line string
---@param position integer bytes before the cursor
---@return string[]
function M.complete(lead, line, position)
  return require('confine.completion').command(M.names(), lead, line:sub(1, position))
end

return M
