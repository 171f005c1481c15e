--- Whether the person can be interrupted: whether Neovim waits for a command in
--- normal mode, and nothing is typed for something else.
local M = {}

--- Whether something else waits for a key, or for anything at all: a plugin that
--- asks for a letter is in normal mode, too.
---@return boolean
function M.is_busy()
  return vim.fn.state('moaxwS') ~= ''
end

--- Whether Neovim waits for a command in normal mode, so that the focus may move.
---@return boolean
function M.is()
  local mode = vim.api.nvim_get_mode()
  return (mode.mode == 'n' or mode.mode == 'nt')
    and not mode.blocking
    and not M.is_busy()
    and vim.fn.getcmdwintype() == ''
    and vim.fn.reg_recording() == ''
    and vim.fn.reg_executing() == ''
end

--- Whether something was typed that was not obeyed yet. It is left there.
---@return boolean
function M.has_typed_ahead()
  return vim.fn.getchar(1) ~= 0
end

return M
