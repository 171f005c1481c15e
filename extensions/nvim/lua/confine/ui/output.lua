--- The window with the output of a run, while it comes. What a command prints
--- can do nothing here but be read.
local M = {}

local ansi = require('confine.ansi')
local runs = require('confine.runs')
local text = require('confine.text')
local window = require('confine.ui.window')

--- Lines that are shown at most, and milliseconds between two drawings.
local most_lines = 10000
local interval = 50

---@class confine.OutputView
---@field run confine.Run
---@field buf integer
---@field filters table<confine.Stream, fun(bytes: string): string>
---@field dropped integer lines of output that are not shown any more
---@field partial string the last line, as long as it is not ended
---@field waiting confine.Piece[] not drawn yet
---@field drawing boolean a drawing is planned
---@field closed boolean the end is drawn

---@type table<string, confine.OutputView>
local views = {}
local namespace = vim.api.nvim_create_namespace('confine.output')

--- A line of output as it is shown: what follows the last carriage return, with
--- tabs as they are. Whether a sign is drawn as a picture (U+FE0E, U+FE0F) is left
--- to the terminal.
---@param line string
local function shown(line)
  line = line:gsub('\r+$', ''):gsub('^.*\r', ''):gsub('\239\184[\142\143]', '')
  return table.concat(vim.tbl_map(text.readable, vim.split(line, '\t', { plain = true })), '\t')
end

---@param view confine.OutputView
local function at_end(view)
  local wins = {}
  local last = vim.api.nvim_buf_line_count(view.buf)
  for _, win in ipairs(vim.fn.win_findbuf(view.buf)) do
    if vim.api.nvim_win_get_cursor(win)[1] >= last then
      wins[#wins + 1] = win
    end
  end
  return function()
    local count = vim.api.nvim_buf_line_count(view.buf)
    for _, win in ipairs(wins) do
      vim.api.nvim_win_set_cursor(win, { count, 0 })
    end
  end
end

--- Takes lines out below the head, or says that some were never put in.
---@param view confine.OutputView
---@param skipped integer lines that were never put in
local function limit(view, skipped)
  local over = vim.api.nvim_buf_line_count(view.buf) - most_lines
  if over <= 0 and skipped == 0 then
    return
  end
  local noted = view.dropped > 0 and 1 or 0
  local taken = math.max(0, over - noted + 1)
  view.dropped = view.dropped + taken + skipped
  window.set_lines(view.buf, 1, 1 + noted + taken, { ('[%d lines are not shown any more]'):format(view.dropped) })
end

---@param view confine.OutputView
---@param bytes string
local function append(view, bytes)
  if bytes == '' then
    return
  end
  local lines = vim.split(view.partial .. bytes, '\n', { plain = true })
  view.partial = lines[#lines]:sub(-65536)
  local skipped = 0
  if #lines > most_lines then -- no time for what would be taken out at once
    skipped = #lines - most_lines
    lines = vim.list_slice(lines, skipped + 1)
  end
  window.set_lines(view.buf, -2, -1, vim.tbl_map(shown, lines))
  limit(view, skipped)
end

---@param view confine.OutputView
local function close(view)
  view.closed = true
  -- An empty last line is where the next one would have begun.
  local first = vim.api.nvim_buf_line_count(view.buf) - (view.partial == '' and 1 or 0)
  view.partial = ''
  local rows = require('confine.ui.summary').rows(view.run)
  window.set_lines(
    view.buf,
    first,
    -1,
    vim.tbl_map(function(row)
      return row.text
    end, rows)
  )
  window.colour(view.buf, namespace, first, rows)
end

---@param view confine.OutputView
local function draw(view)
  view.drawing = false
  if not vim.api.nvim_buf_is_valid(view.buf) then
    return
  end
  local follow = at_end(view)
  local pieces = view.waiting
  view.waiting = {}
  local parts = {}
  for _, piece in ipairs(pieces) do
    if piece.gap > 0 then
      parts[#parts + 1] = ('\n[%d bytes are left out here]\n'):format(piece.gap)
    end
    parts[#parts + 1] = view.filters[piece.stream](piece.bytes)
  end
  append(view, table.concat(parts))
  if runs.ended(view.run) and not view.closed then
    close(view)
  end
  follow()
end

---@param view confine.OutputView
local function plan(view)
  if not view.drawing then
    view.drawing = true
    vim.defer_fn(function()
      draw(view)
    end, interval)
  end
end

---@param run confine.Run
---@return confine.OutputView
local function make(run)
  require('confine.ui.highlight').define()
  local buf = window.buffer('confine://' .. run.id)
  ---@type confine.OutputView
  local view = {
    run = run,
    buf = buf,
    filters = { stdout = ansi.for_text(), stderr = ansi.for_text() },
    dropped = 0,
    partial = '',
    waiting = {},
    drawing = false,
    closed = false,
  }
  local head = '$ ' .. run.command
  window.set_lines(buf, 0, -1, { head, '' })
  vim.api.nvim_buf_set_extmark(buf, namespace, 0, 0, { end_row = 0, end_col = #head, hl_group = 'ConfineTitle' })
  local gaps = 0
  for _, piece in ipairs(run.pieces) do
    view.waiting[#view.waiting + 1] = { stream = piece.stream, bytes = piece.bytes, gap = piece.gap }
    gaps = gaps + piece.gap
  end
  if run.missing > gaps then
    table.insert(view.waiting, 1, { stream = 'stdout', bytes = '', gap = run.missing - gaps })
  end
  local stop = runs.listen(function(changed, piece)
    if changed == run then
      if piece then
        view.waiting[#view.waiting + 1] = piece
      end
      plan(view)
    end
  end)
  vim.api.nvim_create_autocmd('BufWipeout', {
    buffer = buf,
    once = true,
    callback = function()
      stop()
      views[run.id] = nil
    end,
  })
  window.map_run(buf, run)
  draw(view)
  return view
end

--- Opens the window of a run.
---@param run confine.Run
---@param focus boolean? whether to move there
function M.open(run, focus)
  if run.pty then
    return require('confine.ui.terminal').open(run)
  end
  local view = views[run.id]
  if not view then
    view = make(run)
    views[run.id] = view
  end
  -- One window for output: the run that is opened last is in it.
  for id, other in pairs(views) do
    local win = id ~= run.id and vim.fn.bufwinid(other.buf) or -1
    if win ~= -1 then
      vim.wo[win].winfixbuf = false
      vim.api.nvim_win_set_buf(win, view.buf)
      vim.wo[win].winfixbuf = true
    end
  end
  local win = window.split(view.buf, focus or false)
  vim.api.nvim_win_set_cursor(win, { vim.api.nvim_buf_line_count(view.buf), 0 })
end

return M
