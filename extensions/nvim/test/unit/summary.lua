local check = require('check')
local runs = require('confine.runs')
local summary = require('confine.ui.summary')

local server = { life = {} }
local stream = { text = '', bytes = 0, truncated = false }

-- summed is what stands below the output of a run with this result.
local function summed(more, failure)
  local run = runs.add({ server = server, command = 'x', cwd = '/a' })
  local result = not failure and vim.tbl_extend('force', { status = 'completed', exitCode = 1, durationMs = 1500, timedOut = false, stdout = stream, stderr = stream }, more) or nil
  runs.finish(run, failure, result)
  return table.concat(
    vim.tbl_map(function(row)
      assert(not row.text:find('[%c]'), 'a control character is left')
      return row.text
    end, summary.rows(run)),
    '\n'
  ), run.id
end

check.test('what was refused, and what may be asked for', function()
  local text, id = summed({
    sandbox = { mode = 'workspace-write', denied = true, denials = {
      { op = 'create', path = '/srv/x\n', errno = 'EROFS', count = 1, evidence = 'observed' },
      { op = 'write', path = '/cache', count = 1, evidence = 'observed', incidental = true },
    }, planted = { '/ws/.envrc' } },
    escalation = { additional = { write = { '/srv' }, network = true }, targets = { 'danger-full-access' } },
  })
  check.has(text, '[exit 1, sandbox refused, 1.5 s]')
  check.has(text, 'the sandbox (workspace-write) refused: create /srv/x\\n (EROFS)')
  check.has_not(text, '/cache')
  check.has(text, '/ws/.envrc')
  check.has(text, ':Confine escalate ' .. id .. ' asks for this only: write /srv, network')
  check.has(text, ':Confine escalate ' .. id .. ' danger-full-access')
end)

check.test('a command that was not allowed, output that is missing, a sandbox that failed', function()
  check.has(summed({ status = 'refused', exitCode = nil, approval = { outcome = 'timed-out', by = 'default', reason = 'no answer' } }), 'not allowed: timed-out (no answer)')
  check.has(summed({ outputMissing = 'the connection broke' }), 'part of the output is missing: the connection broke')
  local text = summed(nil, { kind = 'server', message = 'no sandbox', code = -32803, data = { code = 'SANDBOX_UNAVAILABLE', remedies = { 'install it' } } })
  check.has(text, '[did not run')
  check.has(text, 'no sandbox')
  check.has(text, 'install it')
end)
