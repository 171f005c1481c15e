local check = require('check')
local runs = require('confine.runs')

local server = { root = '/a', life = {} }
local function add()
  return runs.add({ server = server, command = 'x', cwd = '/a' })
end

check.test('output is kept up to a limit, and what is missing is counted', function()
  local run = add()
  local printed = 0
  for i = 1, 3000 do
    local bytes = ('%d '):format(i):rep(200)
    printed = printed + #bytes
    runs.output(run, i % 2 == 0 and 'stdout' or 'stderr', bytes, 0)
  end
  runs.output(run, 'stdout', '', 77)
  local kept = 0
  for _, piece in ipairs(run.pieces) do
    kept = kept + #piece.bytes
  end
  assert(kept <= runs.most_bytes and kept > runs.most_bytes / 2, kept)
  check.eq({ run.bytes, run.missing }, { kept, printed - kept + 77 })
  check.has(run.pieces[#run.pieces - 1].bytes, '3000 ')
  check.eq(run.pieces[#run.pieces].gap, 77)
  runs.finish(run, { kind = 'unavailable', message = 'over' })
end)

check.test('many small pieces of both streams are not kept without end', function()
  local run = add()
  for i = 1, 10000 do
    runs.output(run, i % 2 == 0 and 'stdout' or 'stderr', 'x', 0)
  end
  check.eq({ #run.pieces, run.bytes, run.missing }, { 4096, 4096, 5904 })
  runs.finish(run, { kind = 'unavailable', message = 'over' })
end)

check.test('the end that was left out comes from the result', function()
  local run = add()
  runs.output(run, 'stdout', 'start', 0)
  runs.complete(run, { stdout = { bytes = 25, text = 'left out, the end' }, stderr = { bytes = 3, text = 'err' } })
  check.eq(run.pieces, {
    { stream = 'stdout', bytes = 'start', gap = 0 },
    { stream = 'stdout', bytes = 'left out, the end', gap = 3 },
    { stream = 'stderr', bytes = 'err', gap = 0 },
  })
  runs.complete(run, { stdout = { bytes = 25, text = 'the end' }, stderr = { bytes = 3, text = 'err' } })
  check.eq(#run.pieces, 3)
  runs.finish(run, { kind = 'unavailable', message = 'over' })
end)

check.test('runs that have ended are forgotten, those that run are not', function()
  local running = add()
  for _ = 1, runs.most_runs + 10 do
    runs.finish(add(), { kind = 'unavailable', message = 'over' })
  end
  check.eq(#runs.list(), runs.most_runs)
  check.eq(runs.get(running.id), running)
  runs.finish(running, { kind = 'unavailable', message = 'over' })
end)

check.test('a run ends once', function()
  local run = add()
  local told = 0
  local stop = runs.listen(function(changed)
    told = told + (changed == run and 1 or 0)
  end)
  runs.finish(run, nil, { status = 'completed', exitCode = 0, durationMs = 5 })
  runs.finish(run, { kind = 'unavailable', message = 'the server ended' })
  stop()
  check.eq({ told, run.state, run.failure, runs.outcome(run) }, { 1, 'completed', nil, 'ok' })
end)

check.test('what became of it, in words', function()
  local function outcome(result, failure)
    local run = add()
    runs.finish(run, failure, result)
    return runs.outcome(run)
  end
  local base = { status = 'completed', durationMs = 1, timedOut = false }
  local function with(more)
    return vim.tbl_extend('force', base, more)
  end
  check.eq(outcome(with({ exitCode = 3 })), 'exit 3')
  check.eq(outcome(with({ exitCode = 1, sandbox = { denied = true } })), 'exit 1, sandbox refused')
  check.eq(outcome(with({ signal = 'SIGKILL' })), 'SIGKILL')
  check.eq(outcome(with({ timedOut = true, signal = 'SIGTERM' })), 'timed out')
  check.eq(outcome(with({ status = 'refused' })), 'refused')
  check.eq(outcome(with({ status = 'cancelled' })), 'cancelled')
  check.eq(outcome(nil, { kind = 'server', message = 'x' }), 'did not run')
  check.eq(outcome(nil, { kind = 'cancelled', message = 'x' }), 'cancelled')
end)

check.test('what a server does not know any more cannot be asked for', function()
  local run = add()
  runs.finish(run, nil, { status = 'completed', exitCode = 1, durationMs = 1, escalation = { targets = { 'danger-full-access' } } })
  check.eq(runs.can_escalate(run), true)
  server.life = {}
  check.eq(runs.can_escalate(run), false)
end)
