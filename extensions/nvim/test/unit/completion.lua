-- Completion of commands: names that are there, and nothing that is run.
local check = require('check')
local completion = require('confine.completion')

-- inside lets fn work in a folder with some files.
local function inside(fn)
  local folder = vim.fn.tempname()
  vim.fn.mkdir(folder .. '/sub', 'p')
  for _, name in ipairs({ 'plain', 'two words', "it's", 'a\nb', 'no\194\160break', 'sub/inner' }) do
    vim.fn.writefile({}, folder .. '/' .. name)
  end
  local before = vim.fn.getcwd()
  vim.cmd.cd(folder)
  local ok, problem = pcall(fn, folder)
  vim.cmd.cd(before)
  vim.fn.delete(folder, 'rf')
  if not ok then
    error(problem, 0)
  end
end

check.test('files behind a command, as bash has to be given them', function()
  inside(function()
    check.eq(completion.shell('cat p'), { 'plain' })
    check.eq(completion.shell('cat t'), { 'two\\ words' })
    check.eq(completion.shell('cat i'), { "it\\'s" })
    check.eq(completion.shell('cat sub/'), { 'sub/inner' })
    check.eq(completion.shell('cat nothing'), {})
    check.eq(completion.prompt('cat  p'), { 'cat  plain' })
  end)
end)

check.test('a name that cannot be shown as it is is not offered', function()
  inside(function()
    check.eq(completion.shell('cat a'), {})
    check.eq(completion.shell('cat n'), {})
    check.eq(completion.shell('cat '), { "it\\'s", 'plain', 'sub/', 'two\\ words' })
  end)
end)

check.test('programs come first', function()
  assert(vim.tbl_contains(completion.shell('tou'), 'touch'))
  check.eq(completion.command({ 'run', 'runs', 'kill' }, 'ru', 'Confine ru'), { 'run', 'runs' })
  assert(vim.tbl_contains(completion.command({}, 'tou', 'Confine! run tou'), 'touch'))
end)

check.test('completion runs nothing', function()
  inside(function(folder)
    for _, word in ipairs({ '`touch${IFS}made`', "'`touch${IFS}made`'", '{`touch${IFS}made`}', 'x*`touch${IFS}made`', '`=writefile([],"made")`', '$(touch${IFS}made)', '`touch\\ made`', '`touch\tmade`' }) do
      for _, command in ipairs({ word, 'make ' .. word }) do
        completion.shell(command)
        completion.prompt(command)
        completion.command({}, word, 'Confine run ' .. command)
        check.eq(check.exists(folder .. '/made'), false, command)
      end
    end
  end)
end)
