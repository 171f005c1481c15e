--- What is said below the output of a run that has ended. Pure.
local M = {}

local text = require('confine.text')
local runs = require('confine.runs')

---@param additional confine.Additional
---@return string
function M.additional(additional)
  local parts = {}
  for _, kind in ipairs({ 'write', 'read' }) do
    for _, path in ipairs(additional[kind] or {}) do
      parts[#parts + 1] = kind .. ' ' .. text.visible(path)
    end
  end
  if additional.network then
    parts[#parts + 1] = 'network'
  end
  return table.concat(parts, ', ')
end

---@param run confine.Run
---@return confine.Row[]
function M.rows(run)
  local rows = {} ---@type confine.Row[]
  local function add(line, group)
    rows[#rows + 1] = { text = line, group = group }
  end
  local good = run.result and run.result.status == 'completed' and run.result.exitCode == 0
  add(('[%s%s]'):format(runs.outcome(run), run.duration_ms and (', ' .. text.duration(run.duration_ms)) or ''), good and 'ConfineOk' or 'ConfineBad')
  if run.failure then
    add(text.visible(run.failure.message), 'ConfineBad')
    for _, remedy in ipairs(run.failure.data and run.failure.data.remedies or {}) do
      add('  ' .. text.visible(remedy))
    end
  end
  local result = run.result
  if not result then
    return rows
  end
  if result.approval and result.status == 'refused' then
    add(('not allowed: %s (%s)'):format(result.approval.outcome, text.visible(result.approval.reason)), 'ConfineBad')
  end
  if result.error then
    add(text.visible(result.error.message), 'ConfineBad')
  end
  local sandbox = result.sandbox
  for _, denial in ipairs(sandbox and sandbox.denials or {}) do
    if not denial.incidental then
      local what = text.visible(denial.path or denial.address or '')
      add(('the sandbox (%s) refused: %s %s%s'):format(sandbox.mode, text.visible(denial.op), what, denial.errno and (' (%s)'):format(text.visible(denial.errno)) or ''), 'ConfineWarning')
    end
  end
  for _, path in ipairs(sandbox and sandbox.planted or {}) do
    add('made or changed, and run or believed by programs outside: ' .. text.visible(path), 'ConfineWarning')
  end
  if result.outputMissing then
    add('part of the output is missing: ' .. text.visible(result.outputMissing), 'ConfineWarning')
  end
  for _, stream in ipairs({ 'stdout', 'stderr' }) do
    if result[stream].spillPath then
      add(('%s is whole in %s'):format(stream, text.visible(result[stream].spillPath)))
    end
  end
  if runs.can_escalate(run) then
    local hint = result.escalation --[[@as confine.EscalationHint]]
    if hint.additional then
      add((':Confine escalate %s asks for this only: %s'):format(run.id, M.additional(hint.additional)), 'ConfineKey')
    end
    for _, mode in ipairs(hint.targets) do
      add((':Confine escalate %s %s asks for that mode'):format(run.id, mode), 'ConfineKey')
    end
  end
  return rows
end

return M
