--- What can stand behind :Confine, for completion. Neovim's own completion of file
--- names runs what stands between backquotes, outside the sandbox: a command that
--- somebody else proposed must not get there.
local M = {}

local protocol = require('confine.protocol')
local runs = require('confine.runs')
local text = require('confine.text')

--- Names that begin with lead, of files or of programs. None if lead has a sign
--- that means something to Neovim or a shell.
---@param lead string
---@param kind 'file'|'shellcmd'
---@return string[]
local function names(lead, kind)
  if not lead:find('^[%w%._/+~\128-\255-]*$') then
    return {}
  end
  local found = {}
  for _, name in ipairs(vim.fn.getcompletion(lead, kind)) do
    if text.visible(name) == name then
      found[#found + 1] = text.escaped(name)
    end
  end
  return found
end

--- The last word of a command: a program if it is the first one, else a file.
---@param before string the command up to the cursor
---@return string[] words that may take the place of the last one
function M.shell(before)
  local lead = before:match('%S*$')
  return names(lead, before:find('%S%s') and 'file' or 'shellcmd')
end

--- The same for a prompt, which completes all that was typed.
---@param before string
---@return string[]
function M.prompt(before)
  local start = before:sub(1, #before - #before:match('%S*$'))
  return vim.tbl_map(function(word)
    return start .. word
  end, M.shell(before))
end

---@param holds fun(run: confine.Run): boolean
local function ids(holds)
  return vim.tbl_map(function(run)
    return run.id
  end, vim.tbl_filter(holds, runs.list()))
end

--- What can stand behind each name; `rest` is what stands there already.
---@type table<string, fun(rest: string): string[]>
local behind = {
  run = M.shell,
  escalate = function()
    local found = ids(runs.can_escalate)
    local newest = runs.newest(runs.can_escalate)
    return vim.list_extend(found, newest and newest.result.escalation.targets or {})
  end,
  kill = function()
    return ids(function(run)
      return not runs.ended(run)
    end)
  end,
  mode = function()
    return vim.list_extend({ 'configured' }, protocol.modes)
  end,
}

---@param subcommands string[]
---@param lead string
---@param line string up to the cursor
---@return string[]
function M.command(subcommands, lead, line)
  local name, rest = line:match('Confine!?%s+(%S+)%s+(.*)$')
  local found = name and (behind[name] and behind[name](rest) or {}) or subcommands
  return vim.tbl_filter(function(candidate)
    return vim.startswith(candidate, lead)
  end, found)
end

return M
