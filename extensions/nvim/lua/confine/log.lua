--- The plugin's own log: what was started, what ended, what failed. It holds no
--- command and no output.
local M = {}

--- Bytes at which the log begins anew; the one before is kept.
local largest = 512 * 1024

---@return string
function M.path()
  return vim.fs.joinpath(vim.fn.stdpath('log') --[[@as string]], 'confine.log')
end

--- Where the server writes, if it was told to.
---@return string
function M.server_path()
  return vim.fs.joinpath(vim.fn.stdpath('log') --[[@as string]], 'confine-server.log')
end

---@param level 'info'|'warn'|'error'
---@param message string
function M.write(level, message)
  local path = M.path()
  vim.fn.mkdir(vim.fs.dirname(path), 'p')
  local stat = vim.uv.fs_stat(path)
  if stat and stat.size > largest then
    vim.uv.fs_rename(path, path .. '.old')
  end
  local file = io.open(path, 'a')
  if file then
    file:write(('%s %s %s\n'):format(os.date('!%Y-%m-%dT%H:%M:%SZ'), level, require('confine.text').visible(message)))
    file:close()
  end
end

--- Tells the person, in one line: a message can quote what others wrote.
---@param level 'info'|'warn'|'error'
---@param message string
function M.notify(level, message)
  local text = require('confine.text')
  vim.notify('confine: ' .. text.visible(text.bounded(message, 1000)), vim.log.levels[level:upper()], { title = 'confine' })
end

--- Writes to the log and tells the person.
---@param level 'info'|'warn'|'error'
---@param message string
function M.tell(level, message)
  M.write(level, message)
  if require('confine.config').current.notify or level == 'error' then
    M.notify(level, message)
  end
end

return M
