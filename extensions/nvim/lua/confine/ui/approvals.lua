--- The window with what decides later commands: answers of the person's that still
--- count, which can be ended here, and rules of the settings, which cannot.
local M = {}

local client = require('confine.client')
local log = require('confine.log')
local text = require('confine.text')
local window = require('confine.ui.window')

local namespace = vim.api.nvim_create_namespace('confine.approvals')
local help = 'x: end an answer of yours, so that you are asked again   q: close'
local indent = '       '
local decisions = {
  allow = { label = 'allow  ', group = 'ConfineOk' },
  ask = { label = 'ask    ', group = 'ConfineWarning' },
  deny = { label = 'refuse ', group = 'ConfineBad' },
}

---@type integer?
local buf
local planned = false

---@class confine.ApprovalRow: confine.Row
---@field server confine.Server?
---@field approval confine.Approval?

---@type confine.ApprovalRow[] in the order of the lines
local shown = {}

--- Where an answer or a rule comes from, and how long it counts.
---@param approval confine.Approval
---@return string
local function origin(approval)
  if approval.source == 'rule' then
    return ('a rule, %s%s'):format(approval.origin or '?', approval.reason and approval.reason ~= '' and (': ' .. approval.reason) or '')
  end
  local session = approval.session and approval.session ~= '' and ('the session ' .. approval.session) or 'the session'
  return ('your answer, until %s ends; in the folder %s'):format(session, approval.cwd or '?')
end

--- The rows about what one server says.
---@param found confine.Approvals
---@return confine.ApprovalRow[]
function M.rows(found)
  local rows = { { text = found.server.root and ('Workspace folder: ' .. text.visible(found.server.root)) or 'No workspace folder', group = 'ConfineTitle' } }
  if not found.approvals then
    rows[2] = { text = text.visible(found.failure.message), group = 'ConfineBad' }
  elseif #found.approvals == 0 then
    rows[2] = { text = 'Nothing is allowed or refused in advance: no answer of yours still counts, and there are no rules.' }
  end
  for _, approval in ipairs(found.approvals or {}) do
    local decision = decisions[approval.decision] or decisions.ask
    local function add(line, group)
      rows[#rows + 1] = { text = line, group = group, server = found.server, approval = approval }
    end
    add(decision.label .. text.visible(approval.command), decision.group)
    add(indent .. text.readable(approval.text))
    for _, warning in ipairs(approval.warnings or {}) do
      add(indent .. text.visible(warning), 'ConfineWarning')
    end
    add(indent .. text.visible(origin(approval)), 'ConfineHint')
  end
  return rows
end

---@param all confine.Approvals[]
local function draw(all)
  if not buf or not vim.api.nvim_buf_is_valid(buf) then
    return
  end
  local rows = { { text = help, group = 'ConfineHint' } } ---@type confine.ApprovalRow[]
  for _, found in ipairs(all) do
    vim.list_extend(rows, M.rows(found))
  end
  shown = rows
  window.set_rows(buf, namespace, rows)
end

local function ask()
  planned = false
  client.approvals(draw)
end

--- Asks anew in a moment, since an answer may have come or gone.
local function plan()
  if not planned then
    planned = true
    vim.defer_fn(ask, 50)
  end
end

local function revoke()
  local row = shown[vim.api.nvim_win_get_cursor(0)[1]]
  if not row or not row.approval then
    return
  elseif not row.approval.revocable then
    return log.notify('info', ('a rule is taken out where it stands: %s'):format(row.approval.origin or '?'))
  end
  client.revoke(row.server, row.approval.id, function(failure)
    if failure then
      log.tell('error', failure.message)
    end
    plan()
  end)
end

local function make()
  buf = window.buffer('confine://approvals')
  local changed = vim.api.nvim_create_autocmd('User', {
    pattern = { 'ConfineQuestionEnd', 'ConfineRunEnd', 'ConfineStateChanged' },
    callback = plan,
  })
  vim.api.nvim_create_autocmd('BufWipeout', {
    buffer = buf,
    once = true,
    callback = function()
      vim.api.nvim_del_autocmd(changed)
    end,
  })
  window.map(buf, 'x', 'end an answer', revoke)
  window.map_close(buf)
end

--- Opens the window, and moves there.
function M.open()
  require('confine.ui.highlight').define()
  if not buf or not vim.api.nvim_buf_is_valid(buf) then
    make()
  end
  local wo = vim.wo[window.split(buf, true)]
  -- What a command says must not begin a row of ours where it is wrapped.
  wo.breakindent, wo.breakindentopt, wo.showbreak = true, 'shift:' .. #indent, 'NONE'
  ask()
end

return M
