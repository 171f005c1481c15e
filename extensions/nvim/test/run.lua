-- Runs the plugin's tests:  nvim --clean --headless -l test/run.lua SUITES [PATTERN]
-- SUITES is unit (needs nothing else), or editor or screen, which .ci/story starts;
-- several with commas between them.
-- PATTERN is a Lua pattern for the names of tests.
local here = vim.fs.dirname(vim.fs.normalize(vim.fn.fnamemodify(arg[0], ':p')))
local plugin = vim.fs.dirname(here)
package.path = here .. '/?.lua;' .. package.path
vim.opt.runtimepath:prepend(plugin)

local check = require('check')
check.plugin = plugin
check.pattern = arg[2]

for suite in vim.gsplit(arg[1] or 'unit', ',') do
  local folder = here .. '/' .. suite
  local names = {}
  for name, kind in vim.fs.dir(folder) do
    if kind == 'file' and name:find('%.lua$') then
      names[#names + 1] = name
    end
  end
  assert(#names > 0, 'there are no tests in ' .. folder)
  table.sort(names)
  for _, name in ipairs(names) do
    check.file = suite .. '/' .. name:gsub('%.lua$', '')
    dofile(folder .. '/' .. name)
  end
end

io.write(('%d passed, %d failed\n'):format(check.passed, check.failed))
io.flush()
vim.cmd('cquit ' .. (check.failed == 0 and check.passed > 0 and 0 or 1)) -- unlike os.exit, leaves no files behind
