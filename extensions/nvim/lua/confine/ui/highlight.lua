--- Highlight groups, each linked to a standard one unless the person set it.
local M = {}

M.links = {
  ConfineQuestion = 'NormalFloat',
  ConfineBorder = 'WarningMsg',
  ConfineTitle = 'Title',
  ConfineWarning = 'WarningMsg',
  ConfineCommand = 'NormalFloat',
  ConfineLabel = 'Comment',
  ConfineKey = 'Special',
  ConfineHint = 'Comment',
  ConfineOk = 'DiagnosticOk',
  ConfineBad = 'DiagnosticError',
  ConfineRunning = 'DiagnosticInfo',
}

function M.define()
  for name, target in pairs(M.links) do
    vim.api.nvim_set_hl(0, name, { link = target, default = true })
  end
end

return M
