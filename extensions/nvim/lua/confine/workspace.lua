--- Which folder is the workspace: what commands may write to in workspace-write.
--- It comes from where the person works in Neovim, never from a command.
local M = {}

---@param path string
---@return string
local function canonical(path)
  return vim.uv.fs_realpath(path) or vim.fs.normalize(path)
end

--- Whether inner lies in outer, or is it. Both are canonical.
---@param outer string
---@param inner string
---@return boolean
function M.contains(outer, inner)
  if outer == inner then
    return true
  end
  local prefix = outer:sub(-1) == '/' and outer or (outer .. '/')
  return inner:sub(1, #prefix) == prefix
end

--- The server refuses these as workspace folders. They are not sent, since a
--- folder below them may do.
---@param path string canonical
local function too_wide(path)
  local home = vim.uv.os_homedir()
  return vim.fs.dirname(path) == path or (home ~= nil and M.contains(path, canonical(home)))
end

--- The workspace folder for somebody who works in cwd: the nearest folder above
--- with a marker, else cwd itself; nil if that is the home folder or above it.
---@param cwd string
---@param config confine.Config
---@return string?
function M.find(cwd, config)
  if config.root then
    local root = config.root(cwd)
    return root and canonical(root) or nil
  end
  cwd = canonical(cwd)
  local marked = vim.fs.root(cwd, config.root_markers)
  for _, folder in ipairs({ marked and canonical(marked) or cwd, cwd }) do
    if not too_wide(folder) then
      return folder
    end
  end
  return nil
end

--- The folder of the current window.
---@return string
function M.here()
  return canonical(vim.fn.getcwd())
end

return M
