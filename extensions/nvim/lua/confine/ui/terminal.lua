--- The window of a run that has a terminal: what the command draws is drawn, and
--- what is typed is its input.
local M = {}

local ansi = require('confine.ansi')
local runs = require('confine.runs')
local window = require('confine.ui.window')

---@class confine.TerminalView
---@field run confine.Run
---@field buf integer
---@field channel integer
---@field size confine.TerminalSize? as it was told last
---@field closed boolean the end is drawn

---@type table<string, confine.TerminalView>
local views = {}

--- The size of a terminal that is opened from the current window.
---@return confine.TerminalSize
function M.size()
  return { columns = vim.api.nvim_win_get_width(0), rows = require('confine.config').current.height }
end

---@param view confine.TerminalView
local function fit(view)
  local win = vim.fn.bufwinid(view.buf)
  if win == -1 or runs.ended(view.run) then
    return
  end
  local size = { columns = vim.api.nvim_win_get_width(win), rows = vim.api.nvim_win_get_height(win) }
  if not vim.deep_equal(size, view.size) then
    view.size = size
    require('confine.client').resize(view.run, size)
  end
end

---@param view confine.TerminalView
local function close(view)
  view.closed = true
  local lines = vim.tbl_map(function(row)
    return row.text
  end, require('confine.ui.summary').rows(view.run))
  -- Whatever the command left behind: own screen, colours, hidden cursor.
  vim.api.nvim_chan_send(view.channel, '\27[?1049l\27[0m\27[?25h\27[r\27[999;1H\r\n' .. table.concat(lines, '\r\n') .. '\r\n')
  if vim.api.nvim_get_current_buf() == view.buf then
    vim.cmd.stopinsert()
  end
end

---@param run confine.Run
---@return confine.TerminalView
local function make(run)
  local buf = vim.api.nvim_create_buf(false, true)
  vim.bo[buf].bufhidden = 'wipe'
  ---@type confine.TerminalView
  local view = { run = run, buf = buf, channel = 0, closed = false }
  view.channel = vim.api.nvim_open_term(buf, {
    on_input = function(_, _, _, bytes)
      require('confine.client').type(run, bytes)
    end,
  })
  window.name(buf, 'confine://' .. run.id)
  local clean = ansi.for_terminal()
  local function draw(piece)
    if piece.gap > 0 then
      vim.api.nvim_chan_send(view.channel, ('\r\n[%d bytes are left out here]\r\n'):format(piece.gap))
    end
    vim.api.nvim_chan_send(view.channel, clean(piece.bytes))
  end
  for _, piece in ipairs(run.pieces) do
    draw(piece)
  end
  local stop = runs.listen(function(changed, piece)
    if changed ~= run then
      return
    end
    if piece then
      draw(piece)
    end
    if runs.ended(run) and not view.closed then
      close(view)
    end
  end)
  local resized = vim.api.nvim_create_autocmd({ 'WinResized', 'BufWinEnter' }, {
    callback = function()
      fit(view)
    end,
  })
  vim.api.nvim_create_autocmd('BufWipeout', {
    buffer = buf,
    once = true,
    callback = function()
      stop()
      vim.api.nvim_del_autocmd(resized)
      views[run.id] = nil
    end,
  })
  window.map_run(buf, run)
  if runs.ended(run) then
    close(view)
  end
  return view
end

--- Opens the window of a run, and lets the person type there if it goes on.
---@param run confine.Run
function M.open(run)
  local view = views[run.id]
  if not view then
    view = make(run)
    views[run.id] = view
  end
  window.split(view.buf, true)
  fit(view)
  if not runs.ended(run) then
    vim.cmd.startinsert()
  end
end

return M
