--- Questions by vim.ui.select, for people with a list of their own. The whole
--- question is the prompt, and the first choice refuses.
local M = {}

local questions = require('confine.questions')
local text = require('confine.text')
local guard = require('confine.ui.guard')

--- How often a yes that came too early is asked again.
local most_early = 3

local namespace = vim.api.nvim_create_namespace('confine.select')

local function now()
  return vim.uv.hrtime() / 1e6
end

local function never()
  return false
end

---@param asked confine.Asked
---@param early integer
local function ask(asked, early)
  -- Whoever goes on typing answers nothing: the prompt of Neovim's own list skips
  -- all but digits, so that the 2 of any text would be an answer.
  local watch = guard.new(now())
  vim.on_key(function()
    watch:tick(now(), never)
    watch:typed(now())
  end, namespace)
  local question = asked.question
  local lines = vim.tbl_map(text.visible, vim.split(question.text, '\n', { plain = true }))
  local items = {}
  for _, prefix in ipairs({ '^reject', '^allow' }) do -- refusals first, whatever the order was
    for _, option in ipairs(question.options) do
      if option.kind:find(prefix) then
        items[#items + 1] = option
      end
    end
  end
  local function chosen(option)
    watch:tick(now(), never)
    vim.on_key(nil, namespace)
    if asked.settled then
      if option and option.kind:find('^allow') then
        require('confine.log').tell('warn', 'the question was withdrawn; that answer does nothing')
      end
    elseif not option or not vim.tbl_contains(items, option) then
      questions.dismiss(asked)
    elseif option.kind:find('^allow') and not watch.armed then
      if early >= most_early then
        questions.dismiss(asked)
      else
        vim.schedule(function()
          ask(asked, early + 1)
        end)
      end
    else
      questions.select(asked, option)
    end
  end
  local ok, problem = pcall(vim.ui.select, items, {
    prompt = table.concat(lines, '\n'),
    kind = 'confine.question',
    format_item = function(option)
      return text.visible(option.name)
    end,
  }, chosen)
  if not ok then
    require('confine.log').tell('error', 'vim.ui.select failed, so the question is refused: ' .. tostring(problem))
    questions.dismiss(asked)
  end
end

---@param asked confine.Asked
function M.show(asked)
  while vim.fn.getchar(1) ~= 0 do -- what was typed before
    vim.fn.getchar(0)
  end
  vim.schedule(function()
    if not asked.settled then
      ask(asked, 0)
    end
  end)
end

--- A list cannot be closed from outside; a late choice does nothing.
function M.close()
  vim.on_key(nil, namespace)
end

return M
