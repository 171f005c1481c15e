--- The one mirror of confine's protocol: every name that is on the wire stands
--- here and nowhere else in this plugin. docs/protocol.md says what they mean;
--- a test compares this file with docs/protocol.schema.json.

---@alias confine.AnswerKind 'selected'|'cancelled'
---@alias confine.ApprovalOrigin 'person'|'rule'
---@alias confine.ApprovalScope 'session'|'settings'
---@alias confine.DecidedBy 'limits'|'policy'|'memory'|'grant'|'person'|'default'
---@alias confine.Decision 'allow'|'ask'|'deny'
---@alias confine.Enforcement 'full'|'partial'
---@alias confine.EvidenceSource 'observed'|'stderr'
---@alias confine.FacetState 'enforced'|'partial'|'open'|'unverified'
---@alias confine.FailureCode 'PROGRAM_NOT_FOUND'|'PROGRAM_NOT_EXECUTABLE'|'BAD_WORKING_DIRECTORY'|'ARGUMENT_LIST_TOO_LONG'|'NO_TERMINAL'|'SANDBOX_UNAVAILABLE'|'TOO_MANY_RUNS'|'TOO_MANY_SESSIONS'|'GRANT_CHANGED'|'SETTINGS_INVALID'|'SETTINGS_CHANGED'|'INPUT_CLOSED'|'NOT_RECORDED'|'SERVER_BUSY'
---@alias confine.Mode 'read-only'|'workspace-write'|'danger-full-access'|'external-sandbox'
---@alias confine.ObservationState 'full'|'partial'|'none'
---@alias confine.OptionKind 'allow_once'|'allow_always'|'reject_once'|'reject_always'
---@alias confine.Outcome 'allowed-once'|'allowed-session'|'allowed-always'|'rejected'|'cancelled'|'timed-out'|'unavailable'
---@alias confine.QuestionKind 'command'|'escalation'
---@alias confine.Resource 'processes'|'memory'|'openFiles'|'fileSize'|'tmpSize'|'disk'
---@alias confine.Scope 'once'|'session'
---@alias confine.ServerState 'probing'|'ready'
---@alias confine.Severity 'warning'|'error'
---@alias confine.Status 'running'|'completed'|'cancelled'|'refused'
---@alias confine.Stream 'stdout'|'stderr'
---@alias confine.WithdrawnReason 'expired'|'cancelled'

---@class confine.Additional
---@field network? boolean
---@field read? string[]
---@field write? string[]

---@class confine.Approval
---@field at? string
---@field command string
---@field cwd? string
---@field decision confine.Decision
---@field id string
---@field mode? confine.Mode
---@field origin? string
---@field outcome? 'allowed-session'|'rejected'|'cancelled'
---@field policyHash? string
---@field reason? string
---@field revocable boolean
---@field scope confine.ApprovalScope
---@field session? string
---@field source confine.ApprovalOrigin
---@field text string
---@field wanted? confine.Wanted
---@field warnings? string[]

---@class confine.ApprovalAnswer
---@field outcome confine.ApprovalOutcome

---@class confine.ApprovalFacts
---@field by confine.DecidedBy
---@field outcome confine.Outcome
---@field reason string

---@class confine.ApprovalOutcome
---@field optionId? string
---@field outcome confine.AnswerKind

---@class confine.ApprovalWithdrawn
---@field id string
---@field reason confine.WithdrawnReason

---@class confine.ApprovalsParams
---@field session? string

---@class confine.ApprovalsResult
---@field approvals confine.Approval[]

---@class confine.CancelParams
---@field id number|string

---@class confine.Capabilities
---@field canAsk boolean
---@field hardening? table
---@field hints string[]
---@field limits table
---@field mode confine.Mode
---@field ok boolean
---@field problems string[]
---@field protocolVersion integer
---@field provider string
---@field providers confine.Report[]
---@field pty boolean
---@field refusedRoots confine.RefusedURI[]
---@field roots string[]
---@field settings confine.Setting[]
---@field settingsProblems confine.SettingsProblem[]
---@field state confine.ServerState
---@field stdinOpen boolean
---@field tool confine.Tool
---@field version string

---@class confine.CapabilitiesChanged
---@field state confine.ServerState

---@class confine.CapabilitiesParams
---@field wait? boolean

---@class confine.ClientConfine
---@field approval? boolean
---@field output? boolean
---@field protocolVersion integer

---@class confine.Denial
---@field address? string
---@field count integer
---@field errno? string
---@field evidence confine.EvidenceSource
---@field exe? string
---@field incidental? boolean
---@field op string
---@field path? string
---@field pid? integer

---@class confine.Error
---@field code integer
---@field data? confine.FailureData
---@field message string

---@class confine.EscalationHint
---@field additional? confine.Additional
---@field targets confine.Mode[]

---@class confine.EscalationParams
---@field additional? confine.Additional
---@field justification string
---@field newRunId? string
---@field runId string
---@field sandboxPermissions? confine.Mode
---@field workDoneToken? integer|string

---@class confine.FacetReport
---@field reason? string
---@field state confine.FacetState

---@class confine.FailureData
---@field code confine.FailureCode
---@field detail? string
---@field mode? confine.Mode
---@field name? 'SandboxUnavailableError'
---@field path? string
---@field remedies? string[]
---@field started? boolean

---@class confine.InitializeParams
---@field capabilities table
---@field clientInfo? table
---@field initializationOptions? any
---@field processId integer|nil
---@field rootUri? string|nil
---@field workspaceFolders? table|nil

---@class confine.InitializeResult
---@field capabilities table
---@field serverInfo? table

---@class confine.KillResult
---@field killed boolean
---@field runId string

---@class confine.LimitReport
---@field limit integer
---@field reached? boolean
---@field reason? string
---@field resource confine.Resource
---@field state confine.FacetState

---@class confine.LogMessageParams
---@field message string
---@field type number

---@class confine.Observation
---@field omitted? integer
---@field reason? string
---@field state confine.ObservationState

---@class confine.Option
---@field kind confine.OptionKind
---@field name string
---@field optionId string
---@field scope? confine.Scope

---@class confine.Output
---@field base64? string
---@field data? string
---@field offset integer
---@field runId string
---@field seq integer
---@field skipped? integer
---@field stream confine.Stream

---@class confine.Question
---@field command string
---@field cwd string
---@field defaultOptionId string
---@field env? string[]
---@field evidence confine.Denial[]
---@field expiresAt string
---@field id string
---@field justification? string
---@field kind confine.QuestionKind
---@field mode confine.Mode
---@field options confine.Option[]
---@field policyHash string
---@field reason string
---@field runId string
---@field stdin? string
---@field text string
---@field title string
---@field unshown? integer
---@field wanted confine.Wanted
---@field warnings string[]

---@class confine.RefusedURI
---@field reason string
---@field uri string

---@class confine.Report
---@field abi? integer
---@field checks? table[]
---@field facets? table<string,confine.FacetReport>
---@field kind? string
---@field layers? string[]
---@field limits? table<string,confine.FacetReport>
---@field missingRights? string[]
---@field provider string
---@field reason? string
---@field remedies? string[]
---@field usable boolean
---@field version? string

---@class confine.RevokeParams
---@field id string

---@class confine.RunCommandParams
---@field argv? string[]
---@field background? boolean
---@field command? string
---@field cwd? string
---@field env? table<string,string>
---@field justification? string
---@field mode? confine.Mode
---@field network? boolean
---@field pty? confine.TerminalSize
---@field runId? string
---@field sandboxPermissions? confine.Mode
---@field session? string
---@field stdin? string
---@field stdinOpen? boolean
---@field timeoutMs? integer
---@field workDoneToken? integer|string

---@class confine.ResizeParams
---@field columns integer
---@field rows integer
---@field runId string

---@class confine.RunParams
---@field runId string

---@class confine.RunResult
---@field approval? confine.ApprovalFacts
---@field droppedEnv string[]
---@field durationMs integer
---@field effectiveTimeoutMs integer
---@field error? confine.Error
---@field escalation? confine.EscalationHint
---@field exitCode? integer
---@field modelText string
---@field outputMissing? string
---@field policyHash string
---@field runId string
---@field sandbox? confine.SandboxFacts
---@field signal? string
---@field status confine.Status
---@field stderr confine.StreamText
---@field stdout confine.StreamText
---@field timedOut boolean

---@class confine.SandboxFacts
---@field denials? confine.Denial[]
---@field denied boolean
---@field enforcement? confine.Enforcement
---@field facets? table<string,confine.FacetReport>
---@field kind? string
---@field layers? string[]
---@field limits? confine.LimitReport[]
---@field mode confine.Mode
---@field observation? confine.Observation
---@field planted? string[]
---@field provider? string
---@field runnerFailed? boolean
---@field skippedRoots? string[]

---@class confine.ServerConfine
---@field protocolVersion integer
---@field refusedRoots? confine.RefusedURI[]
---@field state confine.ServerState

---@class confine.Setting
---@field key string
---@field origin string
---@field value any

---@class confine.SettingsProblem
---@field message string
---@field severity confine.Severity

---@class confine.StreamText
---@field bytes integer
---@field spillPath? string
---@field text string
---@field truncated boolean

---@class confine.TerminalSize
---@field columns? integer
---@field rows? integer

---@class confine.Tool
---@field arguments confine.ToolArgument[]
---@field description string
---@field inputSchema table
---@field name string

---@class confine.ToolArgument
---@field field? string
---@field name string

---@class confine.Wanted
---@field additional? confine.Additional
---@field mode? confine.Mode

---@class confine.WorkspaceFolder
---@field name string
---@field uri string

---@class confine.WriteParams
---@field base64? string
---@field close? boolean
---@field data? string
---@field runId string

---@class confine.WriteResult
---@field open boolean
---@field queued integer
---@field runId string
---@field taken integer

local M = {}

--- The version that this client speaks.
M.version = 1

--- Methods that we send.
M.send = {
  initialize = 'initialize',
  initialized = 'initialized',
  shutdown = 'shutdown',
  exit = 'exit',
  cancel = '$/cancelRequest',
  run = 'runCommand',
  escalate = 'requestEscalation',
  capabilities = 'capabilities',
  approvals = 'confine/approvals/list',
  revoke = 'confine/approvals/revoke',
  kill = 'confine/runs/kill',
  write = 'confine/runs/write',
  resize = 'confine/runs/resize',
}

--- Methods that we are sent.
M.receive = {
  question = 'confine/requestApproval',
  withdrawn = 'confine/approvalWithdrawn',
  output = 'confine/output',
  exit = 'confine/exit',
  capabilities_changed = 'confine/capabilitiesChanged',
  log = 'window/logMessage',
}

--- Modes from the narrowest; external-sandbox stands beside them.
---@type confine.Mode[]
M.modes = { 'read-only', 'workspace-write', 'danger-full-access', 'external-sandbox' }

--- Codes of errors that we give.
M.codes = { method_not_found = -32601 }

--- What a client announces of itself.
---@param name string
---@param version string
---@param folder string? the workspace folder
---@param settings table? options that may only tighten
---@return confine.InitializeParams
function M.initialize_params(name, version, folder, settings)
  local folders = {}
  if folder then
    folders[1] = { uri = vim.uri_from_fname(folder), name = vim.fs.basename(folder) }
  end
  ---@type confine.ClientConfine
  local confine = { protocolVersion = M.version, approval = true, output = true }
  return {
    processId = vim.fn.getpid(),
    clientInfo = { name = name, version = version },
    rootUri = vim.NIL,
    workspaceFolders = folder and folders or vim.NIL,
    initializationOptions = settings and next(settings) and settings or nil,
    capabilities = { experimental = { confine = confine } },
  }
end

---@param option_id string
---@return confine.ApprovalAnswer
function M.selected(option_id)
  return { outcome = { outcome = 'selected', optionId = option_id } }
end

---@return confine.ApprovalAnswer
function M.cancelled()
  return { outcome = { outcome = 'cancelled' } }
end

--- Takes away what the decoder of newer Neovims puts where JSON has null, so
--- that an absent field and null are the same.
---@generic T
---@param value T
---@return T
function M.without_null(value)
  if value == vim.NIL then
    return nil
  end
  if type(value) == 'table' then
    for key, inner in pairs(value) do
      if inner == vim.NIL then
        value[key] = nil
      elseif type(inner) == 'table' then
        M.without_null(inner)
      end
    end
  end
  return value
end

--- The name of a field that is no text, if there is one: a message that is not
--- UTF-8 is read by nobody, so it would never be answered.
---@param params any
---@param name string?
---@return string?
function M.not_text(params, name)
  if type(params) == 'string' then
    return not require('confine.text').is_text(params) and name or nil
  elseif type(params) == 'table' then
    for key, value in pairs(params) do
      local bad = M.not_text(key, name) or M.not_text(value, name or tostring(key))
      if bad then
        return bad
      end
    end
  end
end

--- The bytes of a piece of output, as they were printed.
---@param piece confine.Output
---@return string
function M.bytes(piece)
  if piece.base64 then
    local ok, bytes = pcall(vim.base64.decode, piece.base64)
    return ok and bytes or ''
  end
  return piece.data or ''
end

--- Whether a is narrower than b, or the same. What cannot be compared is not.
---@param a confine.Mode
---@param b confine.Mode
---@return boolean
function M.within(a, b)
  if a == b then
    return true
  end
  local rank = {}
  for i, mode in ipairs(M.modes) do
    rank[mode] = i
  end
  if b == 'external-sandbox' then
    return rank[a] ~= nil and a ~= 'danger-full-access'
  end
  return rank[a] ~= nil and rank[b] ~= nil and a ~= 'external-sandbox' and rank[a] < rank[b]
end

return M
