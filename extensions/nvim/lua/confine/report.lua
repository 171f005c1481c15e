--- What a server can enforce, in lines for a person. Pure.
local M = {}

local text = require('confine.text')

---@class confine.Finding
---@field level 'ok'|'info'|'warn'|'error'
---@field text string

local function sorted(t)
  local names = vim.tbl_keys(t)
  table.sort(names)
  return names
end

---@param value any
local function written(value)
  return type(value) == 'string' and value or vim.json.encode(value)
end

--- What is to be said of what a server reports.
---@param c confine.Capabilities
---@return confine.Finding[]
function M.findings(c)
  local out = {} ---@type confine.Finding[]
  local function add(level, format, ...)
    out[#out + 1] = { level = level, text = text.visible(format:format(...)) }
  end
  if c.ok then
    add('ok', 'commands run in mode %s, confined by %s', c.mode, c.provider)
  end
  for _, problem in ipairs(c.problems) do
    add('error', '%s', problem)
  end
  for _, problem in ipairs(c.settingsProblems) do
    add(problem.severity == 'error' and 'error' or 'warn', '%s', problem.message)
  end
  for _, hint in ipairs(c.hints) do
    add('warn', '%s', hint)
  end
  if not c.canAsk then
    add('warn', 'nobody is asked for more: what needs more is refused')
  end
  if #c.roots == 0 then
    add('info', 'there is no workspace folder, so commands may write nowhere')
  end
  for _, root in ipairs(c.roots) do
    add('info', 'workspace folder: %s', root)
  end
  for _, refused in ipairs(c.refusedRoots) do
    add('warn', 'no workspace folder: %s (%s)', refused.uri, refused.reason)
  end
  for _, provider in ipairs(c.providers) do
    if provider.usable then
      add('info', 'provider %s can be used', provider.provider)
    else
      add('info', 'provider %s cannot be used: %s', provider.provider, provider.reason or 'no reason is known')
    end
    if provider.provider == c.provider then
      for _, name in ipairs(sorted(provider.facets or {})) do
        local facet = provider.facets[name]
        local level = facet.state == 'enforced' and 'ok' or 'warn'
        add(level, '%s: %s%s', name, facet.state, facet.reason and ('; ' .. facet.reason) or '')
      end
    end
  end
  for _, setting in ipairs(c.settings) do
    if setting.origin ~= 'default' then
      add('info', 'setting %s = %s, from %s', setting.key, written(setting.value), setting.origin)
    end
  end
  return out
end

return M
