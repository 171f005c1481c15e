-- The queue of questions, with a view that only notes what it is told.
local check = require('check')
local questions = require('confine.questions')
local question = require('sample').question

local server, other = { root = '/a' }, { root = '/b' }
local notes = {}
local view = {
  show = function(asked)
    notes[#notes + 1] = 'show ' .. asked.question.id
  end,
  close = function(asked)
    notes[#notes + 1] = 'close ' .. asked.question.id
  end,
}

local function begin()
  notes = {}
  questions.choose_view = function()
    return view
  end
  questions.forget(server)
  questions.forget(other)
  check.eq(questions.count(), 0)
  notes = {}
end

-- ask asks, and returns the list of answers that were given.
local function ask(id, from, more)
  local answers = {}
  questions.add(from or server, question(vim.tbl_extend('force', { id = id }, more or {})), function(reply)
    answers[#answers + 1] = reply.outcome
  end)
  return answers
end

local refused = { outcome = 'selected', optionId = 'refuse' }
local cancelled = { outcome = 'cancelled' }

check.test('one is shown at a time, in the order in which they came', function()
  begin()
  local one, two = ask('1'), ask('2')
  check.eq({ questions.count(), notes }, { 2, { 'show 1' } })
  questions.refuse(questions.current())
  check.eq(notes, { 'show 1', 'close 1', 'show 2' })
  local first = questions.current()
  questions.select(first, questions.option(first.question, 'allow_once'))
  check.eq({ one, two }, { { refused }, { { outcome = 'selected', optionId = 'allow-once' } } })
  check.eq(notes, { 'show 1', 'close 1', 'show 2', 'close 2' })
end)

check.test('each is answered once', function()
  begin()
  local answers = ask('1')
  local asked = questions.current()
  questions.dismiss(asked)
  questions.select(asked, questions.option(asked.question, 'allow_once'))
  questions.refuse(asked)
  check.eq(answers, { cancelled })
end)

check.test('a withdrawn question is closed, wherever it waits', function()
  begin()
  local one, two, three = ask('1'), ask('2'), ask('3')
  assert(questions.withdraw(server, '2'))
  check.eq(notes, { 'show 1' })
  assert(questions.withdraw(server, '1'))
  check.eq(notes, { 'show 1', 'close 1', 'show 3' })
  check.eq({ one, two, three }, { { cancelled }, { cancelled }, {} })
  check.eq(questions.withdraw(server, 'unknown'), nil)
end)

check.test('a server withdraws its own questions only', function()
  begin()
  local mine, theirs = ask('1', server), ask('1', other)
  check.eq(questions.withdraw(other, '1').server, other)
  check.eq({ mine, theirs }, { {}, { cancelled } })
  questions.forget(other)
  check.eq(mine, {})
  questions.forget(server)
  check.eq(mine, { cancelled })
end)

check.test('a view that fails refuses, and the next question is shown', function()
  begin()
  questions.choose_view = function()
    return { show = function()
      error('no screen')
    end, close = view.close }
  end
  local answers = {}
  check.fails('no screen', questions.add, server, question(), function(reply)
    answers[#answers + 1] = reply.outcome
  end)
  check.eq({ answers, questions.count() }, { { cancelled }, 0 })
  questions.choose_view = function()
    return view
  end
  ask('2')
  check.eq(notes[#notes], 'show 2')
end)

check.test('a question that cannot be refused is not shown', function()
  begin()
  for _, wrong in ipairs({
    { defaultOptionId = 'allow-once' },
    { defaultOptionId = 'unknown' },
    { command = 5 },
    { options = 'none' },
  }) do
    check.fails('not complete', ask, 'x', server, wrong)
  end
  check.eq({ questions.count(), notes }, { 0, {} })
end)

check.test('of two options of a kind none is meant', function()
  local q = question()
  check.eq(questions.option(q, 'allow_once').optionId, 'allow-once')
  table.insert(q.options, { optionId = 'other', name = 'Allow', kind = 'allow_once' })
  check.eq(questions.option(q, 'allow_once'), nil)
end)
