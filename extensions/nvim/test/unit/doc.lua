-- The help file against the code.
local check = require('check')

local help = check.read(check.plugin .. '/doc/confine.txt')

check.test('the help file has tags, and they lead somewhere', function()
  local folder = vim.fn.tempname()
  vim.fn.mkdir(folder, 'p')
  vim.fn.writefile(vim.split(help, '\n'), folder .. '/confine.txt')
  vim.cmd.helptags(folder)
  local tags = {}
  for _, line in ipairs(vim.fn.readfile(folder .. '/tags')) do
    tags[line:match('^(%S+)\t')] = true
  end
  for _, tag in ipairs({ 'confine', ':Confine', 'confine.setup()', 'confine-api' }) do
    assert(tags[tag], 'there is no tag ' .. tag)
  end
  for link in help:gmatch('|(%S-)|') do
    if link:lower():find('confine') then
      assert(tags[link], 'nothing is tagged ' .. link)
    end
  end
  for _, line in ipairs(vim.split(help, '\n')) do
    assert(vim.fn.strdisplaywidth(line) <= 90, 'too wide: ' .. line)
  end
end)

check.test('every subcommand, event, option, colour and function is in it', function()
  for _, name in ipairs(require('confine.commands').names()) do
    check.has(help, '*:Confine-' .. name .. '*')
  end
  for name in check.read(check.plugin .. '/lua/confine/event.lua'):gmatch("| '(%w+)'") do
    check.has(help, '*' .. name .. '*')
  end
  for name in pairs(require('confine.ui.highlight').links) do
    check.has(help, '*hl-' .. name .. '*')
  end
  for name, value in pairs(require('confine')) do
    if type(value) == 'function' then
      check.has(help, '*confine.' .. name .. '()*')
    end
  end
  for name in check.read(check.plugin .. '/lua/confine/config.lua'):match('class confine%.Config\n(.-)\n\n'):gmatch('field ([%w_]+)') do
    assert(help:find('\n      ' .. name .. ' = '), 'the option ' .. name .. ' is not in it')
  end
  for name in check.read(check.plugin .. '/lua/confine/init.lua'):match('class confine%.RunOptions\n(.-)\n\n'):gmatch('field ([%w_]+)') do
    check.has(help, '{' .. name .. '}')
  end
end)

check.test('the options that it shows are the defaults', function()
  local config = require('confine.config')
  local shown = help:match("setup%((%b{})%)")
  local options = assert(load('return ' .. shown))()
  check.eq(config.resolve(options), config.resolve())
end)

check.test('its examples are Lua', function()
  local count = 0
  for block in help:gmatch('>lua\n(.-)\n<') do
    assert(load(block))
    count = count + 1
  end
  assert(count >= 4, count)
end)

check.test('the commands that the README names are there', function()
  local names = require('confine.commands').names()
  for name in check.read(check.plugin .. '/README.md'):gmatch(':Confine!? (%l+)') do
    assert(vim.tbl_contains(names, name), 'there is no :Confine ' .. name)
  end
end)
