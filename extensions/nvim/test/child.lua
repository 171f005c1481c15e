-- A Neovim of its own for a test, with the plugin as a person would have it.
local check = require('check')

local M = {}
local Child = {}
Child.__index = Child

-- start starts one in folder. setup is what stands between the parentheses of setup().
function M.start(folder, setup)
  local self = setmetatable({}, Child)
  self.channel = vim.fn.jobstart({ vim.v.progpath, '--clean', '--embed', '--headless', '-n' }, { rpc = true, cwd = folder })
  assert(self.channel > 0, 'Neovim did not start')
  self.pid = vim.fn.jobpid(self.channel)
  self:lua('vim.o.columns, vim.o.lines = 100, 40')
  self:lua(
    [[
    local plugin, setup = ...
    vim.opt.runtimepath:prepend(plugin)
    vim.cmd.runtime('plugin/confine.lua')
    _G.events, _G.told = {}, {}
    vim.notify = function(message) table.insert(_G.told, message) end
    vim.api.nvim_create_autocmd('User', { pattern = 'Confine*', callback = function(ev)
      table.insert(_G.events, { ev.match, vim.deepcopy(ev.data) })
    end })
    -- The question window, as anybody can see it.
    function _G.question()
      for _, win in ipairs(vim.api.nvim_list_wins()) do
        local config = vim.api.nvim_win_get_config(win)
        if config.zindex == 240 then
          local function flat(chunks)
            return type(chunks) == 'table' and table.concat(vim.tbl_map(function(c) return c[1] end, chunks)) or chunks
          end
          return { win = win, title = flat(config.title), footer = flat(config.footer), current = vim.api.nvim_get_current_win() == win,
            width = config.width, height = config.height,
            text = table.concat(vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(win), 0, -1, false), '\n') }
        end
      end
    end
    -- run runs a command and keeps what comes of it under a name.
    _G.done = {}
    function _G.run(name, command, options)
      return require('confine').run(command, options, function(failure, result)
        _G.done[name] = { failure = failure, result = result }
      end).id
    end
    local options = load('return ' .. setup)()
    require('confine').setup(options)
  ]],
    check.plugin,
    setup or '{}'
  )
  return self
end

function Child:lua(code, ...)
  return vim.rpcrequest(self.channel, 'nvim_exec_lua', code, { ... })
end

function Child:input(keys)
  vim.rpcrequest(self.channel, 'nvim_input', keys)
end

-- settle returns when what was put in before has been read, and what it led to was done.
function Child:settle()
  for _ = 1, 3 do
    self:lua('vim.api.nvim_input("<Ignore>")')
    self:lua('return 1')
  end
end

-- wait_for returns what an expression gives, once it gives something true.
function Child:wait_for(expression, what, ms)
  return check.until_true(what or expression, function()
    local got = self:lua('return ' .. expression)
    return got ~= vim.NIL and got
  end, ms)
end

function Child:question()
  return self:wait_for('_G.question()', 'a question is shown')
end

-- armed waits until the question obeys keys.
function Child:armed()
  return self:wait_for("(function() local q = _G.question() return q and q.footer:find('refuse') and q end)()", 'the question obeys keys')
end

function Child:no_question()
  check.until_true('no question is shown', function()
    return self:lua('return _G.question() == nil')
  end)
end

-- run starts a command; result waits for what comes of it.
function Child:run(name, command, options)
  return self:lua('return _G.run(...)', name, command, options or vim.empty_dict())
end

function Child:result(name, ms)
  local done = self:wait_for(('_G.done[%q]'):format(name), name .. ' ends', ms)
  if done.failure then
    error(name .. ' failed: ' .. vim.inspect(done.failure), 2)
  end
  return done.result
end

function Child:failure(name)
  local done = self:wait_for(('_G.done[%q]'):format(name), name .. ' ends')
  assert(done.failure, name .. ' did not fail: ' .. vim.inspect(done.result))
  return done.failure
end

-- quit ends it as a person does, and waits for its end.
function Child:quit()
  pcall(vim.rpcnotify, self.channel, 'nvim_command', 'qall!')
  check.eq(vim.fn.jobwait({ self.channel }, 10000), { 0 }, 'exit status of Neovim')
end

-- with starts one, lets fn use it, and ends it whatever happens.
function M.with(folder, setup, fn)
  local child = M.start(folder, setup)
  local ok, problem = xpcall(fn, debug.traceback, child)
  if not ok and not vim.rpcrequest(child.channel, 'nvim_get_mode').blocking then
    child.told = child:lua('return { _G.told, _G.question and _G.question() or 0, vim.api.nvim_get_mode(), vim.fn.getcmdwintype(), vim.fn.reg_recording() }')
  end
  local quit, why = pcall(child.quit, child)
  if not quit then
    vim.fn.jobstop(child.channel)
  end
  if not ok then
    if child.told then
      problem = problem .. '\nit was told: ' .. vim.inspect(child.told)
    end
    error(problem, 0)
  end
  assert(quit, why)
end

return M
