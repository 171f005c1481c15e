--- Questions that wait for the person: which is shown, and what is answered.
--- Each is answered once. Whatever is no clear yes refuses. Pure: a view is told
--- what to show.
local M = {}

local protocol = require('confine.protocol')
local event = require('confine.event')

---@class confine.Asked a question that waits
---@field server confine.Server
---@field question confine.Question
---@field package answer fun(reply: confine.ApprovalAnswer)
---@field settled boolean

---@class confine.View
---@field show fun(asked: confine.Asked)
---@field close fun(asked: confine.Asked)
---@field focus fun() puts what it shows in front of the person

---@type confine.Asked[] the first is the one that is shown
local waiting = {}
---@type confine.View?
local shown_in

--- The view for a question; set by whoever puts the plugin together.
---@type fun(asked: confine.Asked): confine.View
M.choose_view = function()
  error('no view')
end

--- Is told of each question that needs no answer any more.
---@type fun(asked: confine.Asked)
M.on_settled = function() end

---@return integer
function M.count()
  return #waiting
end

---@return confine.Asked?
function M.current()
  return waiting[1]
end

--- Puts the question that is shown in front of the person.
---@return boolean there is one
function M.focus()
  if not shown_in then
    return false
  end
  shown_in.focus()
  return true
end

--- The option of a kind, if there is exactly one.
---@param question confine.Question
---@param kind confine.OptionKind
---@return confine.Option?
function M.option(question, kind)
  local found
  for _, option in ipairs(question.options) do
    if option.kind == kind then
      if found then
        return nil -- which one is meant?
      end
      found = option
    end
  end
  return found
end

--- Whether a question has what we need to show it and to refuse it.
---@param question confine.Question
---@return boolean
local function is_whole(question)
  for _, field in ipairs({ 'id', 'runId', 'title', 'command', 'cwd', 'mode', 'reason', 'text', 'defaultOptionId' }) do
    if type(question[field]) ~= 'string' then
      return false
    end
  end
  if type(question.options) ~= 'table' or type(question.warnings) ~= 'table' or type(question.wanted) ~= 'table' then
    return false
  end
  local default
  for _, option in ipairs(question.options) do
    if type(option) ~= 'table' or type(option.optionId) ~= 'string' or type(option.name) ~= 'string' then
      return false
    end
    if option.optionId == question.defaultOptionId then
      default = option
    end
  end
  return default ~= nil and (default.kind == 'reject_once' or default.kind == 'reject_always')
end

local function show_first()
  local first = waiting[1]
  if first and not shown_in then
    local view = M.choose_view(first)
    shown_in = view
    view.show(first)
  end
end

---@param asked confine.Asked
---@param reply confine.ApprovalAnswer
---@param outcome string for the autocommand
local function settle(asked, reply, outcome)
  if asked.settled then
    return
  end
  asked.settled = true
  local was_first = waiting[1] == asked
  for i, other in ipairs(waiting) do
    if other == asked then
      table.remove(waiting, i)
      break
    end
  end
  asked.answer(reply)
  if was_first and shown_in then
    local view = shown_in
    shown_in = nil
    view.close(asked)
  end
  M.on_settled(asked)
  event.emit('ConfineQuestionEnd', { id = asked.question.id, run_id = asked.question.runId, outcome = outcome })
  show_first()
end

--- A question came in.
---@param server confine.Server
---@param question confine.Question
---@param answer fun(reply: confine.ApprovalAnswer)
function M.add(server, question, answer)
  ---@type confine.Asked
  local asked = { server = server, question = question, answer = answer, settled = false }
  if not is_whole(question) then
    error('the question is not complete')
  end
  waiting[#waiting + 1] = asked
  local ok, problem = pcall(show_first)
  if not ok then
    shown_in = nil
    settle(asked, protocol.cancelled(), 'cancelled')
    error(problem, 0)
  end
  event.emit('ConfineQuestion', { id = question.id, run_id = question.runId, question = vim.deepcopy(question), waiting = #waiting })
end

--- The person chose an option.
---@param asked confine.Asked
---@param option confine.Option
function M.select(asked, option)
  settle(asked, protocol.selected(option.optionId), option.kind)
end

--- The person chose to refuse.
---@param asked confine.Asked
function M.refuse(asked)
  settle(asked, protocol.selected(asked.question.defaultOptionId), 'reject_once')
end

--- The question was closed without an answer.
---@param asked confine.Asked
function M.dismiss(asked)
  settle(asked, protocol.cancelled(), 'cancelled')
end

--- The server withdrew a question. Returns it if it was waiting.
---@param server confine.Server
---@param id string
---@return confine.Asked?
function M.withdraw(server, id)
  for _, asked in ipairs(waiting) do
    if asked.server == server and asked.question.id == id then
      settle(asked, protocol.cancelled(), 'withdrawn')
      return asked
    end
  end
end

--- All questions of a server are moot, since it ended.
---@param server confine.Server
function M.forget(server)
  for _, asked in ipairs(vim.list_slice(waiting)) do
    if asked.server == server then
      settle(asked, protocol.cancelled(), 'withdrawn')
    end
  end
end

return M
