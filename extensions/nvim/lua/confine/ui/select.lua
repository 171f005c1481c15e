--- Questions by vim.ui.select, for people with a list of their own. The whole
--- question is the prompt, and the first choice refuses. The list takes every key
--- from the moment it is there, so it waits until nothing else is being typed.
local M = {}

local questions = require('confine.questions')
local text = require('confine.text')
local guard = require('confine.ui.guard')
local idle = require('confine.ui.idle')
local log = require('confine.log')

--- How often a yes that came too early is asked again.
local most_early = 3
--- Milliseconds between two looks at whether the person can be asked.
local interval = 50

---@class confine.List the list of the question that is shown
---@field asked confine.Asked
---@field guard confine.Guard
---@field opened integer how often it was opened; only the last one counts
---@field early integer how often a yes came too early
---@field timer uv.uv_timer_t?

---@type confine.List?
local list
local namespace = vim.api.nvim_create_namespace('confine.select')

local function now()
  return vim.uv.hrtime() / 1e6
end

local function never()
  return false
end

--- The answers, refusals first whatever their order was.
---@param question confine.Question
---@return confine.Option[]
local function answers(question)
  local items = {}
  for _, prefix in ipairs({ '^reject', '^allow' }) do
    for _, option in ipairs(question.options) do
      if option.kind:find(prefix) then
        items[#items + 1] = option
      end
    end
  end
  return items
end

---@param l confine.List
local function stop_waiting(l)
  if l.timer and not l.timer:is_closing() then
    l.timer:stop()
    l.timer:close()
  end
  l.timer = nil
end

local open

--- What comes of a choice in the list that was opened last, and is still asked.
---@param l confine.List
---@param option confine.Option?
local function chosen(l, option)
  l.guard:tick(now(), never)
  if not option then
    questions.dismiss(l.asked)
  elseif not option.kind:find('^allow') or l.guard.armed then
    questions.select(l.asked, option)
  elseif l.early >= most_early then
    questions.dismiss(l.asked)
  else
    l.early = l.early + 1
    local opened = l.opened
    vim.schedule(function()
      if list == l and l.opened == opened then
        open(l)
      end
    end)
  end
end

---@param l confine.List
function open(l)
  stop_waiting(l)
  l.opened = l.opened + 1
  l.guard:disarm(now())
  local opened = l.opened
  local question = l.asked.question
  local items = answers(question)
  local ok, problem = pcall(vim.ui.select, items, {
    prompt = table.concat(vim.tbl_map(text.visible, vim.split(question.text, '\n', { plain = true })), '\n'),
    kind = 'confine.question',
    format_item = function(option)
      return text.visible(option.name)
    end,
  }, function(option)
    if list == l and l.opened == opened then
      chosen(l, vim.tbl_contains(items, option) and option or nil)
    elseif option and option.kind:find('^allow') then
      log.tell('warn', 'that list is out of date; the answer does nothing')
    end
  end)
  if not ok and list == l then
    log.tell('error', 'vim.ui.select failed, so the question is refused: ' .. tostring(problem))
    questions.dismiss(l.asked)
  end
end

--- Opens the list as soon as the person can be asked.
---@param l confine.List
local function wait(l)
  l.timer = assert(vim.uv.new_timer())
  l.timer:start(0, interval, vim.schedule_wrap(function()
    if list == l and l.timer and idle.is() and now() - l.guard.since >= guard.quiet and not idle.has_typed_ahead() then
      open(l)
    end
  end))
  if not idle.is() then -- few words: a message that fills more than a line takes keys
    log.tell('warn', 'a question waits')
  end
end

---@param asked confine.Asked
function M.show(asked)
  ---@type confine.List
  local l = { asked = asked, guard = guard.new(now()), opened = 0, early = 0 }
  list = l
  -- Whoever goes on typing answers nothing: the prompt of Neovim's own list skips
  -- all but digits, so that the 2 of any text would be an answer.
  vim.on_key(function()
    if l.opened > 0 then
      l.guard:tick(now(), never)
    end
    l.guard:typed(now())
  end, namespace)
  wait(l)
end

--- A list cannot be closed from outside; a late choice does nothing.
---@param asked confine.Asked
function M.close(asked)
  if list and list.asked == asked then
    stop_waiting(list)
    list = nil
    vim.on_key(nil, namespace)
  end
end

--- Opens the list, for a person who asked for it; again if it is lost out of sight.
function M.focus()
  if list then
    open(list)
  end
end

return M
