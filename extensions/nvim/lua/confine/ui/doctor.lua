--- The window with what can be enforced here.
local M = {}

local window = require('confine.ui.window')

local marks = { ok = '✓ ', info = '  ', warn = '! ', error = '✗ ' }
local groups = { ok = 'ConfineOk', warn = 'ConfineWarning', error = 'ConfineBad' }
local namespace = vim.api.nvim_create_namespace('confine.doctor')

---@param server confine.Server
---@param capabilities confine.Capabilities
function M.open(server, capabilities)
  require('confine.ui.highlight').define()
  local program = server.program
  local lines = {
    ('confine %s at %s, protocol %d'):format(capabilities.version, program and program.command[1] or '?', capabilities.protocolVersion),
    '',
  }
  local buf = window.buffer('confine://doctor')
  local findings = require('confine.report').findings(capabilities)
  for _, finding in ipairs(findings) do
    lines[#lines + 1] = marks[finding.level] .. finding.text
  end
  vim.list_extend(lines, { '', '`confine doctor --verify` in a terminal tries all of it.' })
  window.set_lines(buf, 0, -1, lines)
  for i, finding in ipairs(findings) do
    if groups[finding.level] then
      vim.api.nvim_buf_set_extmark(buf, namespace, i + 1, 0, { end_row = i + 1, end_col = #lines[i + 2], hl_group = groups[finding.level] })
    end
  end
  window.map(buf, 'q', 'close', function()
    vim.cmd.close()
  end)
  vim.wo[window.split(buf, true)].linebreak = true
end

return M
