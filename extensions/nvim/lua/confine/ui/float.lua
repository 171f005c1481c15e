--- The question window: floats above everything, takes the focus once the person
--- is not typing, and obeys single keys. What closes it refuses.
local M = {}

local questions = require('confine.questions')
local text = require('confine.text')
local wording = require('confine.ui.wording')
local guard = require('confine.ui.guard')
local idle = require('confine.ui.idle')
local window = require('confine.ui.window')

--- Milliseconds between two looks at whether the question is in front of the person.
local interval = 50
--- How often a window that something else closed is opened again.
local most_reopened = 20

---@class confine.Float the window of the question that is shown
---@field asked confine.Asked
---@field buf integer
---@field win integer
---@field rows confine.Row[]
---@field width integer
---@field guard confine.Guard
---@field seen integer the last row that was on the screen
---@field focused boolean whether it took the focus by itself already
---@field reopened integer
---@field typed string what was typed for the key that is being obeyed
---@field draining boolean
---@field footer string
---@field problem any what went wrong last

---@type confine.Float?
local float
local namespace = vim.api.nvim_create_namespace('confine.question')
local group = vim.api.nvim_create_augroup('confine.question', { clear = true })
local timer ---@type uv.uv_timer_t?

local function now()
  return vim.uv.hrtime() / 1e6
end

---@return confine.Keys
local function keys()
  return require('confine.config').current.keys
end

local function raw(key)
  return vim.api.nvim_replace_termcodes(key, true, true, true)
end

---@param f confine.Float
local function alive(f)
  return float == f and not f.asked.settled
end

---@param f confine.Float
local function is_open(f)
  return vim.api.nvim_win_is_valid(f.win)
end

---@param f confine.Float
local function in_front(f)
  return is_open(f) and vim.api.nvim_get_current_win() == f.win and vim.api.nvim_win_get_buf(f.win) == f.buf
end

--- Does something to the window that calls no autocommands: one of the person's may
--- fail, and would leave it half done.
---@generic T
---@param fn fun(): T
---@return T
local function without_autocommands(fn)
  local before = vim.o.eventignore
  vim.o.eventignore = 'all'
  local ok, got = pcall(fn)
  pcall(function()
    vim.o.eventignore = before -- which is done before OptionSet is called
  end)
  if not ok then
    error(got, 0)
  end
  return got
end

--- Options that decide what is seen: text must not be folded, concealed, moved or
--- replaced.
local window_options = {
  wrap = true,
  linebreak = false,
  breakindent = false,
  showbreak = 'NONE',
  list = false,
  conceallevel = 0,
  concealcursor = '',
  foldenable = false,
  foldcolumn = '0',
  signcolumn = 'no',
  number = false,
  relativenumber = false,
  statuscolumn = '',
  winbar = '',
  spell = false,
  cursorline = false,
  cursorcolumn = false,
  cursorbind = false,
  scrollbind = false,
  rightleft = false,
  arabic = false,
  diff = false,
  winblend = 0,
  scrolloff = 0,
  sidescrolloff = 0,
  winfixbuf = true,
  winhighlight = 'NormalFloat:ConfineQuestion,FloatBorder:ConfineBorder,FloatTitle:ConfineTitle,FloatFooter:ConfineHint',
}

--- Sets them; again whenever the window may have been touched.
---@param win integer
local function set_window_options(win)
  without_autocommands(function()
    for name, value in pairs(window_options) do
      vim.api.nvim_set_option_value(name, value, { scope = 'local', win = win })
    end
  end)
end

--- Moves the focus to the window.
---@param f confine.Float
local function enter(f)
  f.focused = true
  without_autocommands(function()
    vim.api.nvim_set_current_win(f.win)
  end)
  set_window_options(f.win)
end

---@param f confine.Float
local function footer(f)
  local k = keys()
  if not in_front(f) then
    return ' leave what you type, or :Confine answer '
  elseif not f.guard.armed then
    return ' … '
  elseif f.seen < #f.rows then
    return (' %s refuse  %d more rows: read to the end (G) '):format(k.refuse[1], #f.rows - f.seen)
  end
  local parts = { k.refuse[1] .. ' refuse', k.dismiss[1] .. ' close' } -- first, since a narrow window cuts the end
  for _, choice in ipairs(wording.allowing(f.asked.question, k)) do
    parts[#parts + 1] = choice.key .. ' ' .. choice.label
  end
  return ' ' .. table.concat(parts, '  ') .. ' '
end

local function title()
  local count = questions.count()
  return count > 1 and (' confine · question 1 of %d '):format(count) or ' confine · question '
end

--- How wide the text may be now.
---@return integer
local function width()
  return math.max(10, math.min(100, vim.o.columns - 4))
end

--- Where the window goes.
---@param count integer rows
---@param columns integer
local function placed(count, columns)
  local lines = vim.o.lines - vim.o.cmdheight - (vim.o.laststatus > 0 and 1 or 0)
  local height = math.max(1, math.min(count, lines - 2))
  return {
    relative = 'editor',
    width = columns,
    height = height,
    row = math.max(0, math.floor((lines - height - 2) / 2)),
    col = math.max(0, math.floor((vim.o.columns - columns - 2) / 2)),
    style = 'minimal',
    border = 'rounded',
    title = title(),
    footer = '…',
    zindex = 240,
  }
end

--- Opens the window without taking the focus, or moves it to where it belongs.
---@param f confine.Float
local function place(f)
  local where = placed(#f.rows, f.width)
  if is_open(f) then
    vim.api.nvim_win_set_config(f.win, where)
  else
    where.noautocmd = true
    f.win = vim.api.nvim_open_win(f.buf, false, where)
  end
  set_window_options(f.win)
  vim.api.nvim_win_call(f.win, function()
    vim.fn.winrestview({ topline = 1, lnum = 1, col = 0, leftcol = 0 })
  end)
end

--- Shows the question from its beginning.
---@param f confine.Float
local function draw(f)
  f.width = width()
  f.rows = wording.rows(f.asked.question, f.width, keys())
  f.seen = 0
  without_autocommands(function()
    window.set_rows(f.buf, namespace, f.rows)
    place(f)
  end)
  f.footer = ''
  f.guard:disarm(now())
end

--- Reads what was typed and not obeyed yet, and throws it away.
---@param f confine.Float
local function drain(f)
  local any = false
  f.draining = true
  while vim.fn.getchar(1) ~= 0 do
    any = true
    vim.fn.getchar(0)
  end
  f.draining = false
  return any
end

--- Whether the text is as we wrote it; a plugin may have touched the buffer.
---@param f confine.Float
local function untouched(f)
  local lines = vim.api.nvim_buf_get_lines(f.buf, 0, -1, false)
  if #lines ~= #f.rows then
    return false
  end
  for i, row in ipairs(f.rows) do
    if row.text ~= lines[i] then
      return false
    end
  end
  return true
end

---@param f confine.Float
local function show_state(f)
  local wanted = footer(f) .. '\0' .. title()
  if wanted ~= f.footer then
    f.footer = wanted
    vim.api.nvim_win_set_config(f.win, { title = title(), footer = footer(f) })
    local mode = vim.api.nvim_get_mode().mode
    if mode:sub(1, 1) ~= 'r' then -- not over a message that waits for a key
      vim.cmd.redraw()
    end
  end
end

--- One look at everything that changes by itself.
---@param f confine.Float
local function tick(f)
  if not alive(f) then
    return
  end
  local elsewhere = is_open(f) and vim.api.nvim_win_get_tabpage(f.win) ~= vim.api.nvim_get_current_tabpage()
  if elsewhere then
    M.hide(f)
  end
  if not is_open(f) then
    f.reopened = f.reopened + (elsewhere and 0 or 1)
    if f.reopened > most_reopened then
      require('confine.log').tell('error', 'the question window is closed again and again; the question is refused')
      return questions.dismiss(f.asked)
    end
    draw(f)
    f.focused = false
  end
  if f.width ~= width() or not untouched(f) then
    draw(f)
  end
  if not in_front(f) then
    if not f.focused and idle.is() and now() - f.guard.since >= guard.quiet and not idle.has_typed_ahead() then
      enter(f)
    end
    if f.guard.armed or in_front(f) then
      f.guard:disarm(now())
    end
  else
    local was = f.guard.armed
    if idle.is_busy() then
      f.guard:disarm(now())
    elseif idle.is() then
      f.guard:tick(now(), function()
        return drain(f)
      end)
    end
    if f.guard.armed and not was then
      set_window_options(f.win)
    end
    f.seen = math.max(f.seen, vim.fn.line('w$', f.win))
  end
  show_state(f)
end

--- tick, in which nothing may go wrong for long.
---@param f confine.Float
local function safe_tick(f)
  local ok, problem = pcall(tick, f)
  if not ok and alive(f) then
    f.guard:disarm(now())
    if problem ~= f.problem then -- it may come back twenty times a second
      f.problem = problem
      require('confine.log').write('error', 'the question window: ' .. tostring(problem))
    end
  end
end

--- Closes the window without answering.
---@param f confine.Float
function M.hide(f)
  local win = f.win
  f.win = -1
  if vim.api.nvim_win_is_valid(win) then
    pcall(without_autocommands, function()
      vim.api.nvim_win_close(win, true)
    end)
  end
end

---@param f confine.Float
---@param key string
---@return confine.Keypress
local function keypress(f, key)
  return { typed = f.typed, key = raw(key), replayed = vim.fn.reg_executing() ~= '' }
end

---@param f confine.Float
local function set_keys(f)
  local k = keys()
  local taken = {}
  local function map(key, to)
    taken[raw(key)] = true
    vim.keymap.set('n', key, to, { buffer = f.buf, nowait = true, silent = true })
  end
  for _, choice in ipairs(wording.allowing(f.asked.question, k)) do
    map(choice.key, function()
      if alive(f) and in_front(f) and f.seen >= #f.rows and untouched(f) and f.guard:allows(keypress(f, choice.key)) then
        questions.select(f.asked, choice.option)
      end
    end)
  end
  for _, way in ipairs({ 'refuse', 'dismiss' }) do
    for _, key in ipairs(k[way]) do
      map(key, function()
        if alive(f) and f.guard:refuses(keypress(f, key)) then
          questions[way](f.asked)
        end
      end)
    end
  end
  -- Nothing can be changed in here; without these, keys in passing give errors.
  for key in ('iIaAoOsScCdDxXpPrRJuYU.@Q'):gmatch('.') do
    if not taken[key] then
      map(key, '<Nop>')
    end
  end
end

---@return integer
local function make_buffer()
  local buf = vim.api.nvim_create_buf(false, true)
  local bo = vim.bo[buf]
  bo.buftype, bo.bufhidden, bo.swapfile, bo.modeline, bo.undolevels = 'nofile', 'hide', false, false, -1
  return buf
end

--- The window was closed by a command. If the person was in it, that is an
--- answer, and no yes; if not, it is opened again.
---@param f confine.Float
---@param win integer
---@param by_person boolean
local function closed(f, win, by_person)
  if not alive(f) or win ~= f.win then
    return
  end
  f.win = -1
  if by_person then
    vim.schedule(function()
      if alive(f) then
        questions.dismiss(f.asked)
      end
    end)
  end
end

---@param f confine.Float
local function watch(f)
  vim.api.nvim_clear_autocmds({ group = group })
  vim.api.nvim_create_autocmd('WinClosed', {
    group = group,
    callback = function(event)
      closed(f, tonumber(event.match) --[[@as integer]], vim.api.nvim_get_current_win() == f.win)
    end,
  })
  vim.api.nvim_create_autocmd({ 'WinScrolled', 'CursorMoved' }, {
    group = group,
    callback = function()
      vim.schedule(function()
        safe_tick(f)
      end)
    end,
  })
  vim.api.nvim_create_autocmd('VimResized', {
    group = group,
    callback = function()
      vim.schedule(function()
        if alive(f) then
          f.width = -1 -- the height may have changed alone
          safe_tick(f)
        end
      end)
    end,
  })
  vim.on_key(function(_, typed)
    if not f.draining then
      f.typed = typed or ''
      if f.typed ~= '' then
        f.guard:typed(now())
      end
    end
  end, namespace)
  timer = assert(vim.uv.new_timer())
  timer:start(interval, interval, function()
    vim.schedule(function()
      safe_tick(f)
    end)
  end)
end

local function unwatch()
  vim.api.nvim_clear_autocmds({ group = group })
  vim.on_key(nil, namespace)
  if timer and not timer:is_closing() then
    timer:stop()
    timer:close()
  end
  timer = nil
end

--- Shows a question.
---@param asked confine.Asked
function M.show(asked)
  require('confine.ui.highlight').define()
  ---@type confine.Float
  local f = {
    asked = asked,
    buf = without_autocommands(make_buffer),
    win = -1,
    rows = {},
    width = 0,
    guard = guard.new(now()),
    seen = 0,
    focused = false,
    reopened = 0,
    typed = '',
    draining = false,
    footer = '',
  }
  float = f
  local ok, problem = pcall(draw, f)
  if not ok then -- such as in a place where no window may be opened; the next tick tries again
    require('confine.log').write('warn', 'the question window: ' .. tostring(problem))
    require('confine.log').notify('warn', 'a question waits: ' .. text.short(asked.question.title, 60))
  end
  set_keys(f)
  watch(f)
  safe_tick(f)
end

--- Closes it; the question needs no answer any more.
---@param asked confine.Asked
function M.close(asked)
  local f = float
  if not f or f.asked ~= asked then
    return
  end
  float = nil
  unwatch()
  M.hide(f)
  if vim.api.nvim_buf_is_valid(f.buf) then
    pcall(without_autocommands, function()
      vim.api.nvim_buf_delete(f.buf, { force = true })
    end)
  end
end

--- Puts the question in front of the person, who asked for it.
function M.focus()
  local f = float
  if not f then
    return
  end
  if not is_open(f) then
    draw(f)
  end
  enter(f)
  vim.cmd.stopinsert() -- asked for by a mapping of insert mode or a terminal's
  f.guard:disarm(now())
  safe_tick(f)
end

return M
