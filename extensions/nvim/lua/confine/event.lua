--- `User` autocommands, for whoever wants to know. What goes wrong in one is
--- logged and changes nothing here.
local M = {}

---@alias confine.EventName
---| 'ConfineQuestion' a question is asked: id, question, waiting
---| 'ConfineQuestionEnd' it needs no answer any more: id, outcome
---| 'ConfineRunStart' a command was sent: run
---| 'ConfineRunEnd' it has ended: run, result or error
---| 'ConfineStateChanged' a server's state changed: root, state

---@param name confine.EventName
---@param data table
function M.emit(name, data)
  local ok, problem = pcall(vim.api.nvim_exec_autocmds, 'User', { pattern = name, modeline = false, data = data })
  if not ok then
    require('confine.log').write('error', ('an autocommand for %s failed: %s'):format(name, problem))
  end
end

return M
