-- A question as the server asks it, for tests.
local M = {}

function M.question(more)
  return vim.tbl_deep_extend('force', {
    id = 'abcd-1',
    runId = 'n1',
    kind = 'escalation',
    title = 'confine abcd: run a command again with NO SANDBOX (danger-full-access)?',
    command = 'make install',
    cwd = '/somewhere/project',
    mode = 'workspace-write',
    wanted = { mode = 'danger-full-access' },
    reason = 'the sandbox refused something',
    evidence = {},
    warnings = { 'Nothing confines it.' },
    policyHash = 'h',
    options = {
      { optionId = 'refuse', name = 'Refuse', kind = 'reject_once', scope = 'once' },
      { optionId = 'allow-once', name = 'Allow this once', kind = 'allow_once', scope = 'once' },
      { optionId = 'allow-session', name = 'Allow for this session', kind = 'allow_always', scope = 'session' },
    },
    defaultOptionId = 'refuse',
    expiresAt = '2030-01-01T10:00:00Z',
    text = 'confine abcd: run a command again?\nCommand: «make install»',
  }, more or {})
end

return M
