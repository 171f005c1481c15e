--- The window with all runs.
local M = {}

local runs = require('confine.runs')
local text = require('confine.text')
local window = require('confine.ui.window')

local namespace = vim.api.nvim_create_namespace('confine.list')
local help = 'Enter: output   x: end it   e: ask for what was refused   q: close'

---@type integer?
local buf
---@type confine.Run[] in the order of the lines
local shown = {}
local planned = false

---@param run confine.Run
---@return string group
local function group(run)
  if run.waiting then
    return 'ConfineWarning'
  elseif not runs.ended(run) then
    return 'ConfineRunning'
  end
  local result = run.result
  return result and result.status == 'completed' and result.exitCode == 0 and 'ConfineOk' or 'ConfineBad'
end

local function draw()
  planned = false
  if not buf or not vim.api.nvim_buf_is_valid(buf) then
    return
  end
  shown = vim.list_slice(runs.list())
  table.sort(shown, function(a, b) -- what runs comes first, then the newest
    if runs.ended(a) ~= runs.ended(b) then
      return runs.ended(b)
    end
    return a.started_ms > b.started_ms or (a.started_ms == b.started_ms and a.id > b.id)
  end)
  local lines, groups = { help }, { 'ConfineHint' }
  for _, run in ipairs(shown) do
    local outcome = runs.outcome(run)
    local took = run.duration_ms and text.duration(run.duration_ms) or ''
    lines[#lines + 1] = ('%-5s %s  %-22s %9s  %s%s'):format(
      run.id,
      os.date('%H:%M:%S', run.started),
      outcome,
      took,
      run.of and ('(again ' .. run.of .. ') ') or '',
      text.short(run.command, 400)
    )
    groups[#groups + 1] = group(run)
  end
  if #shown == 0 then
    lines[#lines + 1] = 'Nothing was run yet; :Confine run COMMAND'
  end
  window.set_lines(buf, 0, -1, lines)
  vim.api.nvim_buf_clear_namespace(buf, namespace, 0, -1)
  for i, name in ipairs(groups) do
    local column = i == 1 and #lines[i] or math.min(#lines[i], 38)
    vim.api.nvim_buf_set_extmark(buf, namespace, i - 1, 0, { end_row = i - 1, end_col = column, hl_group = name })
  end
end

local function plan()
  if not planned then
    planned = true
    vim.defer_fn(draw, 50)
  end
end

---@return confine.Run?
local function under_cursor()
  return shown[vim.api.nvim_win_get_cursor(0)[1] - 1]
end

--- Opens the window, and moves there.
function M.open()
  require('confine.ui.highlight').define()
  if not buf or not vim.api.nvim_buf_is_valid(buf) then
    buf = window.buffer('confine://runs')
    local stop = runs.listen(function(_, piece)
      if not piece then
        plan()
      end
    end)
    vim.api.nvim_create_autocmd('BufWipeout', { buffer = buf, once = true, callback = stop })
    window.map(buf, '<CR>', 'output', function()
      local run = under_cursor()
      if run then
        require('confine.ui.output').open(run, true)
      end
    end)
    window.map(buf, 'x', 'end the command', function()
      local run = under_cursor()
      if run and not runs.ended(run) then
        require('confine.client').kill(run)
      end
    end)
    window.map(buf, 'e', 'ask for what was refused', function()
      local run = under_cursor()
      if run then
        require('confine.commands').escalate({ run.id })
      end
    end)
    window.map_close(buf)
  end
  draw()
  vim.wo[window.split(buf, true)].wrap = false
end

return M
