--- Windows of the plugin's own for lists and output: a split below, a buffer
--- that nothing can be typed into.
local M = {}

--- Names a buffer. What had the name goes, with its windows: what was shown before,
--- or an empty buffer of a session that was saved and loaded.
---@param buf integer
---@param name string
function M.name(buf, name)
  for _, other in ipairs(vim.api.nvim_list_bufs()) do
    if other ~= buf and vim.api.nvim_buf_get_name(other) == name and not vim.bo[other].modified then
      vim.api.nvim_buf_delete(other, { force = true })
    end
  end
  pcall(vim.api.nvim_buf_set_name, buf, name)
end

--- A buffer for text that others wrote: no modelines, no file type, no undo.
---@param name string
---@return integer
function M.buffer(name)
  local buf = vim.api.nvim_create_buf(false, true)
  local bo = vim.bo[buf]
  bo.buftype, bo.bufhidden, bo.swapfile, bo.modeline, bo.undolevels, bo.modifiable = 'nofile', 'wipe', false, false, -1, false
  M.name(buf, name)
  return buf
end

--- Replaces lines of such a buffer.
---@param buf integer
---@param first integer
---@param last integer
---@param lines string[]
function M.set_lines(buf, first, last, lines)
  vim.bo[buf].modifiable = true
  vim.api.nvim_buf_set_lines(buf, first, last, false, lines)
  vim.bo[buf].modifiable = false
end

--- Replaces all lines of such a buffer by rows in their colours.
---@param buf integer
---@param namespace integer
---@param rows confine.Row[]
function M.set_rows(buf, namespace, rows)
  M.set_lines(
    buf,
    0,
    -1,
    vim.tbl_map(function(row)
      return row.text
    end, rows)
  )
  vim.api.nvim_buf_clear_namespace(buf, namespace, 0, -1)
  M.colour(buf, namespace, 0, rows)
end

--- Colours rows that stand from line first on.
---@param buf integer
---@param namespace integer
---@param first integer counted from 0
---@param rows confine.Row[]
function M.colour(buf, namespace, first, rows)
  for i, row in ipairs(rows) do
    if row.group then
      local line = first + i - 1
      vim.api.nvim_buf_set_extmark(buf, namespace, line, 0, { end_row = line, end_col = #row.text, hl_group = row.group })
    end
  end
end

--- Shows a buffer in a split below, or finds the window that shows it.
---@param buf integer
---@param focus boolean
---@return integer win
function M.split(buf, focus)
  local win = vim.fn.bufwinid(buf)
  if win == -1 then
    win = vim.api.nvim_open_win(buf, false, { split = 'below', win = -1, height = require('confine.config').current.height })
    for name, value in pairs({
      number = false,
      relativenumber = false,
      list = false,
      spell = false,
      foldenable = false,
      conceallevel = 0,
      signcolumn = 'no',
      wrap = true,
      winfixheight = true,
      winfixbuf = true,
    }) do
      vim.api.nvim_set_option_value(name, value, { scope = 'local', win = win })
    end
    -- If the window outlives the buffer, it is the person's, for any buffer.
    vim.api.nvim_create_autocmd('BufWinLeave', {
      buffer = buf,
      callback = function()
        if vim.api.nvim_win_is_valid(win) then
          vim.wo[win].winfixbuf = false
        end
      end,
    })
  end
  if focus then
    vim.api.nvim_set_current_win(win)
  end
  return win
end

---@param buf integer
---@param key string
---@param what string
---@param fn fun()
function M.map(buf, key, what, fn)
  vim.keymap.set('n', key, fn, { buffer = buf, nowait = true, silent = true, desc = 'confine: ' .. what })
end

--- The key that closes the window, also if it is the last one.
---@param buf integer
function M.map_close(buf)
  M.map(buf, 'q', 'close', function()
    if not pcall(vim.cmd.close) then
      vim.cmd.bwipeout()
    end
  end)
end

--- The keys of a window that shows a run.
---@param buf integer
---@param run confine.Run
function M.map_run(buf, run)
  M.map_close(buf)
  M.map(buf, 'x', 'end the command', function()
    if not require('confine.runs').ended(run) then
      require('confine.client').kill(run)
    end
  end)
  M.map(buf, 'e', 'ask for what was refused', function()
    require('confine.commands').escalate({ run.id })
  end)
end

return M
