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
