-- When a key counts, without a clock.
local check = require('check')
local guard = require('confine.ui.guard')

local function nothing()
  return false
end

local function press(more)
  return vim.tbl_extend('force', { typed = 'Y', key = 'Y', replayed = false }, more or {})
end

check.test('no key counts before it was quiet for half a second', function()
  local g = guard.new(1000)
  g:tick(1499, nothing)
  check.eq(g:allows(press()), false)
  check.eq(g:refuses(press()), false)
  g:tick(1500, nothing)
  check.eq(g:allows(press()), true)
  check.eq(g:refuses(press()), true)
end)

check.test('typing goes on, so the time begins anew', function()
  local g = guard.new(0)
  for now = 100, 3000, 400 do
    g:typed(now)
    g:tick(now + 399, nothing)
    check.eq(g:allows(press()), false)
  end
  g:tick(2900 + 500, nothing)
  check.eq(g:allows(press()), true)
end)

check.test('what was typed and not read yet counts as typing', function()
  local g, waiting = guard.new(0), 2
  local function drain()
    waiting = waiting - 1
    return waiting >= 0
  end
  g:tick(500, drain)
  check.eq(g.armed, false)
  g:tick(999, drain)
  check.eq(g.armed, false)
  g:tick(1000, drain)
  check.eq(g.armed, false)
  g:tick(1500, drain)
  check.eq(g.armed, true)
end)

check.test('drawn anew, it takes half a second again', function()
  local g = guard.new(0)
  g:tick(500, nothing)
  g:disarm(600)
  check.eq(g:allows(press()), false)
  g:tick(1099, nothing)
  check.eq(g:allows(press()), false)
  g:tick(1100, nothing)
  check.eq(g:allows(press()), true)
end)

check.test('only the key itself, from the keyboard, allows', function()
  local g = guard.new(0)
  g:tick(500, nothing)
  check.eq(g:allows(press({ typed = '' })), false) -- a macro, :normal, feedkeys
  check.eq(g:allows(press({ typed = 'Q' })), false) -- a mapping
  check.eq(g:allows(press({ replayed = true })), false)
  check.eq(g:refuses(press({ typed = 'Q', key = 'n' })), true) -- a mapping may refuse
  check.eq(g:refuses(press({ typed = '' })), false)
end)
