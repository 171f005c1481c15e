--- Arguments of the shell tool, as a model gives them, as options of a run. Pure.
local M = {}

--- From a field of runCommand to the name of our option.
local named = {
  cwd = 'cwd',
  timeoutMs = 'timeout_ms',
  background = 'background',
  sandboxPermissions = 'permissions',
  justification = 'justification',
}

--- The command and options, or what is wrong, in a sentence for the model.
---@param tool confine.Tool
---@param arguments table<string, any>
---@return { command: string, options: confine.RunOptions }|string
function M.options(tool, arguments)
  if type(arguments) ~= 'table' then
    return 'the arguments must be an object.'
  end
  local fields = {}
  for _, argument in ipairs(tool.arguments) do
    fields[argument.name] = argument.field or false
  end
  local command, options = nil, {}
  for name, value in pairs(arguments) do
    local field = fields[name]
    if value == vim.NIL then
      field = false
    end
    if field == nil then
      return ('there is no argument %q.'):format(tostring(name))
    elseif field == 'command' then
      command = value
    elseif field and named[field] then
      options[named[field]] = value
    elseif field then
      return ('this client does not know how to pass %q on.'):format(name)
    end
  end
  if type(command) ~= 'string' or command == '' then
    return 'the argument "command" must be a text.'
  end
  return { command = command, options = options }
end

return M
