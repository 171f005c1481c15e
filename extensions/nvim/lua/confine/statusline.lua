--- The component for a status line.
local M = {}

---@param count integer
---@param one string
local function counted(count, one)
  return ('%d %s%s'):format(count, one, count == 1 and '' or 's')
end

--- Workspace folders that were looked up, so that drawing costs nothing.
---@type table<string, { root: string?, until_ms: integer }>
local looked_up = {}

---@return string?
local function root_here()
  local cwd = vim.fn.getcwd()
  local known = looked_up[cwd]
  if not known or known.until_ms < vim.uv.now() then
    local workspace = require('confine.workspace')
    known = { root = workspace.find(workspace.here(), require('confine.config').current), until_ms = vim.uv.now() + 5000 }
    looked_up[cwd] = known
  end
  return known.root
end

---@return string
function M.text()
  if not package.loaded['confine.client'] then
    return ''
  end
  local client = require('confine.client')
  local runs = require('confine.runs')
  local questions = require('confine.questions')
  local root = root_here()
  local server = vim.iter(client.servers()):find(function(s)
    return s.root == root
  end)
  local parts = {}
  if server then
    local capabilities = server.capabilities
    local mode = capabilities and capabilities.mode
    if server.state ~= 'ready' then
      parts[#parts + 1] = server.state
    elseif mode then
      parts[#parts + 1] = client.mode and require('confine.protocol').within(client.mode, mode) and client.mode or mode
      if not capabilities.ok and capabilities.state == 'ready' then
        parts[#parts + 1] = 'cannot run'
      end
    end
  end
  local running = #vim.tbl_filter(function(run)
    return not runs.ended(run)
  end, runs.list())
  if running > 0 then
    parts[#parts + 1] = counted(running, 'run')
  end
  if questions.count() > 0 then
    parts[#parts + 1] = counted(questions.count(), 'question')
  end
  if #parts == 0 then
    return ''
  end
  return (('confine: ' .. table.concat(parts, ' · ')):gsub('%%', '%%%%'))
end

return M
