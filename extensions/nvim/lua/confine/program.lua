--- Finds the program that is started, and checks that it speaks our protocol.
local M = {}

local protocol = require('confine.protocol')
local workspace = require('confine.workspace')

--- The first confine on PATH. Relative entries are passed over: they would find
--- what lies in the current folder.
---@return string?
local function on_path()
  local windows = vim.fn.has('win32') == 1
  for _, folder in ipairs(vim.split(vim.env.PATH or '', windows and ';' or ':', { plain = true })) do
    local file = folder .. (windows and '/confine.exe' or '/confine')
    if folder:find(windows and '^%a:[/\\]' or '^/') and vim.fn.executable(file) == 1 then
      return file
    end
  end
end

--- The program and its first arguments, or why there is none. A program that
--- PATH finds inside the workspace is not started: whoever wrote the workspace
--- would have chosen it.
---@param config confine.Config
---@param root string? the workspace folder
---@return string[]? command, string? problem
function M.find(config, root)
  local command = type(config.cmd) == 'string' and { config.cmd } or config.cmd --[[@as string[]?]]
  if command then
    local path = vim.fn.exepath(command[1])
    if path == '' then
      return nil, ("'%s', which is set as cmd in setup(), is no program"):format(command[1])
    end
    return vim.list_extend({ path }, command, 2)
  end
  local path = on_path()
  if not path then
    return nil, 'the program confine is not on PATH; install it, or set cmd in setup()'
  end
  local real = vim.uv.fs_realpath(path) or path
  if root and (workspace.contains(root, real) or workspace.contains(root, vim.fs.normalize(path))) then
    return nil, ('PATH finds confine inside the workspace, at %s; keep it elsewhere, or set cmd in setup()'):format(path)
  end
  return { path }
end

---@class confine.Program
---@field command string[] without `serve`
---@field version string
---@field protocol integer

--- What `confine version --json` says of a program.
---@param command string[]
---@param on_done fun(problem: string?, program: confine.Program?)
function M.check(command, on_done)
  on_done = vim.schedule_wrap(on_done)
  local asked = vim.list_extend(vim.list_slice(command), { 'version', '--json' })
  local ok, problem = pcall(vim.system, asked, { text = true, timeout = 10000 }, function(done)
    local read, facts = pcall(vim.json.decode, done.stdout or '', { luanil = { object = true } })
    if done.code ~= 0 or not read or type(facts) ~= 'table' or type(facts.protocolVersion) ~= 'number' then
      on_done(("'%s' is not confine: it does not answer `version --json` (exit status %d)"):format(command[1], done.code))
    elseif facts.protocolVersion < protocol.version then
      on_done(('%s is too old: it speaks version %d of the protocol, and %d is needed'):format(command[1], facts.protocolVersion, protocol.version))
    else
      on_done(nil, { command = command, version = tostring(facts.version), protocol = facts.protocolVersion })
    end
  end)
  if not ok then
    on_done(("'%s' cannot be started: %s"):format(command[1], problem))
  end
end

return M
