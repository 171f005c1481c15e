--- The window with what can be enforced here.
local M = {}

local text = require('confine.text')
local window = require('confine.ui.window')

local marks = { ok = '✓ ', info = '  ', warn = '! ', error = '✗ ' }
local groups = { ok = 'ConfineOk', warn = 'ConfineWarning', error = 'ConfineBad' }
local namespace = vim.api.nvim_create_namespace('confine.doctor')

---@param server confine.Server
---@param capabilities confine.Capabilities
function M.open(server, capabilities)
  require('confine.ui.highlight').define()
  local program = server.program
  local rows = {
    { text = text.visible(('confine %s at %s, protocol %d'):format(capabilities.version, program and program.command[1] or '?', capabilities.protocolVersion)) },
    { text = '' },
  } ---@type confine.Row[]
  for _, finding in ipairs(require('confine.report').findings(capabilities)) do
    rows[#rows + 1] = { text = marks[finding.level] .. finding.text, group = groups[finding.level] }
  end
  vim.list_extend(rows, { { text = '' }, { text = '`confine doctor --verify` in a terminal tries all of it.' } })
  local buf = window.buffer('confine://doctor')
  window.set_rows(buf, namespace, rows)
  window.map_close(buf)
  vim.wo[window.split(buf, true)].linebreak = true
end

return M
