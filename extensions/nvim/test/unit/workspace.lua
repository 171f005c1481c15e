local check = require('check')
local workspace = require('confine.workspace')
local program = require('confine.program')
local config = require('confine.config')

local top = vim.uv.fs_realpath(vim.fn.fnamemodify(vim.fn.tempname(), ':h'))
local function folder(name)
  vim.fn.mkdir(top .. '/' .. name, 'p')
  return top .. '/' .. name
end

check.test('the nearest marker above decides, else the folder itself', function()
  folder('project/.git')
  local deep = folder('project/a/b')
  check.eq(workspace.find(deep, config.resolve()), top .. '/project')
  check.eq(workspace.find(deep, config.resolve({ root_markers = { 'nothing.here' } })), deep)
  vim.uv.fs_symlink(deep, top .. '/link')
  check.eq(workspace.find(top .. '/link', config.resolve()), top .. '/project')
end)

check.test('the home folder and what is above it are none', function()
  local home = folder('home/me')
  folder('home/me/.git') -- such as one for the person's own settings
  local project = folder('home/me/project')
  local before = vim.env.HOME
  vim.env.HOME = home
  local found = { workspace.find(project, config.resolve()), workspace.find(home, config.resolve()) or 'none', workspace.find(top .. '/home', config.resolve()) or 'none', workspace.find('/', config.resolve()) or 'none' }
  vim.env.HOME = before
  check.eq(found, { project, 'none', 'none', 'none' })
end)

check.test('a function of the person can find it', function()
  check.eq(workspace.find(top, config.resolve({ root = function(cwd)
    return cwd .. '/project'
  end })), top .. '/project')
  check.eq(workspace.find(top, config.resolve({ root = function() end })), nil)
end)

check.test('what contains what', function()
  check.eq(workspace.contains('/a', '/a/b'), true)
  check.eq(workspace.contains('/a', '/a'), true)
  check.eq(workspace.contains('/a', '/ab'), false)
  check.eq(workspace.contains('/', '/a'), true)
end)

check.test('a program that PATH finds inside the workspace is not started', function()
  local bin = folder('project/bin')
  local path = bin .. '/confine'
  vim.fn.writefile({ '#!/bin/sh' }, path)
  vim.uv.fs_chmod(path, tonumber('755', 8))
  local before = vim.env.PATH
  vim.env.PATH = bin .. ':' .. before
  local inside, problem = program.find(config.resolve(), top .. '/project')
  local outside = program.find(config.resolve(), folder('elsewhere'))
  vim.uv.fs_symlink(path, folder('elsewhere/bin') .. '/confine') -- a link from outside leads in
  vim.env.PATH = top .. '/elsewhere/bin:' .. before
  local linked = program.find(config.resolve(), top .. '/project')
  vim.env.PATH = before
  check.eq({ inside, outside, linked }, { nil, { path }, nil })
  check.has(problem, 'inside the workspace')
  check.eq(program.find(config.resolve({ cmd = { path, 'x' } }), top .. '/project'), { path, 'x' })
  local none, why = program.find(config.resolve({ cmd = top .. '/nothing' }), nil)
  check.eq(none, nil)
  check.has(why, 'is no program')
end)

check.test('a relative entry of PATH finds nothing', function()
  local bin = folder('planted/bin')
  vim.fn.writefile({ '#!/bin/sh' }, bin .. '/confine')
  vim.uv.fs_chmod(bin .. '/confine', tonumber('755', 8))
  local path, cwd = vim.env.PATH, vim.uv.cwd()
  vim.uv.chdir(bin)
  local found = {}
  for _, entry in ipairs({ '.', '', '../bin' }) do
    vim.env.PATH = entry
    table.insert(found, program.find(config.resolve(), top .. '/elsewhere') or 'none')
  end
  vim.env.PATH = bin -- the same file by its whole path
  table.insert(found, (program.find(config.resolve(), top .. '/elsewhere') or {})[1])
  vim.env.PATH = path
  vim.uv.chdir(cwd)
  check.eq(found, { 'none', 'none', 'none', bin .. '/confine' })
end)
