-- What tests are written with.
local M = { passed = 0, failed = 0, file = '', plugin = '' }

-- test runs one test, unless the pattern leaves it out.
function M.test(name, fn)
  local title = M.file .. ': ' .. name
  if M.pattern and not title:find(M.pattern) then
    return
  end
  local started = vim.uv.hrtime()
  local ok, problem = xpcall(fn, debug.traceback)
  local took = (vim.uv.hrtime() - started) / 1e9
  if ok then
    M.passed = M.passed + 1
    io.write(('ok   %s%s\n'):format(title, took > 1 and (' (%.1f s)'):format(took) or ''))
  else
    M.failed = M.failed + 1
    io.write('FAIL ' .. title .. '\n' .. problem .. '\n')
  end
  io.flush()
end

function M.eq(got, want, what)
  if not vim.deep_equal(got, want) then
    error(('%s: got %s, want %s'):format(what or 'value', vim.inspect(got), vim.inspect(want)), 2)
  end
end

-- has checks that text holds part, as it stands.
function M.has(text, part)
  text = tostring(text)
  if not text:find(part, 1, true) then
    error(('%s is not in:\n%s'):format(vim.inspect(part), #text > 3000 and text:sub(1, 1000) .. '\n…\n' .. text:sub(-1000) or text), 2)
  end
end

function M.has_not(text, part)
  if tostring(text):find(part, 1, true) then
    error(('%s is in:\n%s'):format(vim.inspect(part), text), 2)
  end
end

-- fails checks that fn raises an error that holds part.
function M.fails(part, fn, ...)
  local ok, problem = pcall(fn, ...)
  if ok then
    error('there was no error; wanted one with ' .. part, 2)
  end
  M.has(problem, part)
end

-- until_true returns what holds() returns once that is true, and fails after ms milliseconds.
function M.until_true(what, holds, ms)
  local got
  if not vim.wait(ms or 20000, function()
    got = holds()
    return got
  end, 10) then
    error(('waited %d ms until %s'):format(ms or 20000, what), 2)
  end
  return got
end

function M.need(name)
  return vim.env[name] or error(name .. ' is not set; start this suite with .ci/story')
end

function M.read(path)
  local file = assert(io.open(path, 'rb'))
  local text = file:read('*a')
  file:close()
  return text
end

function M.exists(path)
  return vim.uv.fs_lstat(path) ~= nil
end

return M
