-- Installed as the README says for Neovim's own packages, with no options set.
local check = require('check')

check.test('as a package of Neovim, with its help', function()
  local data = vim.fn.tempname()
  local start = data .. '/nvim/site/pack/confine/start'
  vim.fn.mkdir(start, 'p')
  -- A copy, since tags are written beside the help file.
  vim.fn.system({ 'cp', '-r', check.plugin, start .. '/confine.nvim' })
  local env = { XDG_DATA_HOME = data, PATH = vim.fs.dirname(check.need('CONFINE_BIN')) .. ':' .. vim.env.PATH }
  local function neovim(...)
    local done = vim.system({ vim.v.progpath, '--headless', '-n', ... }, { env = env, cwd = check.need('STORY_WORKSPACE'), text = true }):wait(60000)
    check.eq(done.code, 0, done.stderr)
    return done.stdout .. done.stderr
  end
  neovim('-c', 'helptags ALL', '-c', 'q')
  local script = vim.fn.tempname() .. '.lua'
  vim.fn.writefile(
    vim.split(
      [[
    assert(vim.fn.exists(':Confine') == 2, 'there is no :Confine')
    assert(not package.loaded['confine.client'], 'the plugin is loaded before it is used')
    vim.cmd('help :Confine-run')
    assert(vim.api.nvim_buf_get_name(0):find('confine.txt$'))
    local done
    require('confine').run('echo installed', {}, function(failure, result) done = failure and failure.message or result.stdout.text end)
    vim.wait(20000, function() return done end, 10)
    io.write(tostring(done))
    vim.cmd('qall!')
  ]],
      '\n'
    ),
    script
  )
  check.has(neovim('-c', 'luafile ' .. script), 'installed')
  vim.fn.delete(data, 'rf')
  vim.fn.delete(script)
end)

-- started_with starts a Neovim with this init.lua, and returns what it says of the plugin.
local function started_with(init)
  local home = vim.fn.tempname()
  local config = home .. '/config/nvim'
  vim.fn.mkdir(config, 'p')
  vim.fn.writefile(vim.split(init, '\n'), config .. '/init.lua')
  local env = { XDG_CONFIG_HOME = home .. '/config', XDG_DATA_HOME = home .. '/data', XDG_STATE_HOME = home .. '/state' }
  local done = vim.system(
    { vim.v.progpath, '--headless', '-n', '-c', "lua io.write('is ', vim.fn.exists(':Confine'), ' ', tostring(package.loaded['confine.client']))", '-c', 'qall!' },
    { env = env, cwd = check.need('STORY_WORKSPACE'), text = true }
  ):wait(60000)
  check.eq(done.code, 0, done.stderr)
  vim.fn.delete(home, 'rf')
  return done.stdout .. done.stderr
end

-- readme is the block of the README that follows a comment, with other places for those in it.
local function readme(comment, places)
  local block = check.read(check.plugin .. '/README.md'):match('\n%-%- ' .. vim.pesc(comment) .. '[^\n]*\n(.-)```')
  assert(block, 'the README has no ' .. comment)
  for from, to in pairs(places) do
    local replaced, count = block:gsub(vim.pesc(from), function()
      return to
    end)
    assert(count == 1, 'there is no ' .. from)
    block = replaced
  end
  return block
end

check.test('by a line of init.lua', function()
  check.has(started_with(readme('in init.lua, without a plugin manager', { ['~/src/confine/extensions/nvim'] = check.plugin })), 'is 2 nil')
end)

if vim.pack then
  check.test('by vim.pack', function()
    local repository = vim.fn.tempname()
    vim.fn.mkdir(repository .. '/confine/extensions', 'p')
    vim.fn.system({ 'cp', '-r', check.plugin, repository .. '/confine/extensions/nvim' })
    for _, arguments in ipairs({ { 'init', '-q' }, { 'add', '-A' }, { 'commit', '-q', '-m', 'plugin' } }) do
      vim.fn.system(vim.list_extend({ 'git', '-c', 'user.name=t', '-c', 'user.email=t@example.test', '-C', repository .. '/confine' }, arguments))
      check.eq(vim.v.shell_error, 0, arguments[1])
    end
    local init = readme('vim.pack', { ["'https://github.com/confine-dev/confine' })"] = ("'file://%s/confine' }, { confirm = false })"):format(repository) })
    check.has(started_with(init), 'is 2 nil')
    vim.fn.delete(repository, 'rf')
  end)
end
