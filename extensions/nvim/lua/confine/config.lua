--- The options of setup(): defaults, and a check that names what is wrong.
local M = {}

---@class confine.Keys the keys of the question window
---@field allow_once string
---@field allow_session string
---@field refuse string[]
---@field dismiss string[]

---@class confine.Config
---@field cmd string|string[]? the program; default: `confine` on PATH
---@field root_markers string[] what marks the top of a project
---@field root (fun(cwd: string): string?)? finds the workspace folder instead of the markers
---@field settings table settings of confine, which can only tighten
---@field question 'float'|'select' where questions are asked
---@field keys confine.Keys
---@field output 'split'|'none' what `:Confine run` shows output in
---@field height integer rows of the windows for runs and output
---@field notify boolean whether withdrawn questions and failures are told by vim.notify
---@field log_server boolean whether the server writes its own log, in every detail

---@type confine.Config
local defaults = {
  cmd = nil,
  root_markers = { '.git', '.hg', '.jj', '.svn' },
  root = nil,
  settings = {},
  question = 'float',
  keys = {
    allow_once = 'Y',
    allow_session = 'S',
    refuse = { 'n', '<CR>' },
    dismiss = { 'q', '<Esc>' },
  },
  output = 'split',
  height = 12,
  notify = true,
  log_server = false,
}

local function is_list_of_strings(value)
  if type(value) ~= 'table' or #value == 0 or not vim.islist(value) then
    return false
  end
  return vim.iter(value):all(function(item)
    return type(item) == 'string' and item ~= ''
  end)
end

local function one_of(...)
  local choices = { ... }
  return function(value)
    return vim.tbl_contains(choices, value), "one of '" .. table.concat(choices, "', '") .. "'"
  end
end

local function is_boolean(value)
  return type(value) == 'boolean', 'true or false'
end

--- Each returns whether a value will do, and what would.
local checks = {
  cmd = function(value)
    return (type(value) == 'string' and value ~= '') or is_list_of_strings(value), 'a program, or a list of program and arguments'
  end,
  root_markers = function(value)
    return is_list_of_strings(value), 'a list of names'
  end,
  root = function(value)
    return type(value) == 'function', 'a function'
  end,
  settings = function(value)
    return type(value) == 'table' and (next(value) == nil or not vim.islist(value)), 'a table of settings'
  end,
  question = one_of('float', 'select'),
  output = one_of('split', 'none'),
  height = function(value)
    return type(value) == 'number' and value >= 3 and value % 1 == 0, 'a whole number from 3 on'
  end,
  notify = is_boolean,
  log_server = is_boolean,
}

--- A key that allows must be one visible character, since keys such as <CR> are
--- typed ahead too easily.
local function is_plain_key(value)
  return type(value) == 'string' and value:find('^[%w%p]$') ~= nil and not value:find('[:<|\\]')
end

---@param keys confine.Keys
local function check_keys(keys)
  local used = {}
  local function take(key, name)
    local raw = vim.api.nvim_replace_termcodes(key, true, true, true)
    if used[raw] then
      error(("confine.setup: keys.%s and keys.%s are both '%s'"):format(used[raw], name, key), 0)
    end
    used[raw] = name
  end
  for _, name in ipairs({ 'allow_once', 'allow_session' }) do
    if not is_plain_key(keys[name]) then
      error(('confine.setup: keys.%s must be one letter, digit or sign, not %s'):format(name, vim.inspect(keys[name])), 0)
    end
    take(keys[name], name)
  end
  for _, name in ipairs({ 'refuse', 'dismiss' }) do
    if not is_list_of_strings(keys[name]) then
      error(('confine.setup: keys.%s must be a list of keys, not %s'):format(name, vim.inspect(keys[name])), 0)
    end
    for _, key in ipairs(keys[name]) do
      take(key, name)
    end
  end
end

local function unknown(path, given, known)
  for key in pairs(given) do
    if not known[key] then
      local names = vim.tbl_keys(known)
      table.sort(names)
      error(('confine.setup: unknown option %s%s; there are: %s'):format(path, tostring(key), table.concat(names, ', ')), 0)
    end
  end
end

--- The options that are in force, for given ones. Raises an error that names the
--- option that is wrong.
---@param given table?
---@return confine.Config
function M.resolve(given)
  given = given or {}
  if type(given) ~= 'table' then
    error('confine.setup: the options must be a table', 0)
  end
  local known = { keys = true }
  for name in pairs(checks) do
    known[name] = true
  end
  unknown('', given, known)
  for name, check in pairs(checks) do
    if given[name] ~= nil then
      local ok, wanted = check(given[name])
      if not ok then
        error(('confine.setup: %s must be %s, not %s'):format(name, wanted, vim.inspect(given[name])), 0)
      end
    end
  end
  if given.keys ~= nil then
    if type(given.keys) ~= 'table' then
      error('confine.setup: keys must be a table', 0)
    end
    unknown('keys.', given.keys, defaults.keys)
  end
  local config = vim.tbl_extend('force', defaults, given)
  config.keys = vim.tbl_extend('force', defaults.keys, given.keys or {})
  check_keys(config.keys)
  return vim.deepcopy(config)
end

--- What is in force now.
---@type confine.Config
M.current = M.resolve()

---@param given table?
function M.set(given)
  M.current = M.resolve(given)
end

return M
