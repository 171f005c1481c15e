// The mirror of confine's protocol, as docs/protocol.md describes it: names and
// types that this client uses. Nothing else in the extension knows how things
// are called on the wire. test/protocol.test.ts compares it with
// docs/protocol.schema.json.

/** The version of the protocol that this client speaks. */
export const protocolVersion = 1;

export type Mode = 'read-only' | 'workspace-write' | 'danger-full-access' | 'external-sandbox';
export type Status = 'running' | 'completed' | 'cancelled' | 'refused';
export type Facet = 'fileWrite' | 'fileRead' | 'network' | 'unixSockets' | 'processes' | 'metadata' | 'devices';
export type FacetState = 'enforced' | 'partial' | 'open' | 'unverified';
export type Stream = 'stdout' | 'stderr';

/** What a client announces as capabilities.experimental.confine. */
export interface ClientConfine {
  protocolVersion: number;
  approval?: boolean;
  output?: boolean;
}

export interface ServerConfine {
  protocolVersion: number;
  state: 'probing' | 'ready';
}

export interface RunCommandParams {
  command?: string;
  runId?: string;
  cwd?: string;
  mode?: Mode;
  timeoutMs?: number;
  background?: boolean;
  pty?: TerminalSize;
  sandboxPermissions?: Mode;
  justification?: string;
}

/** The size of a command's terminal. */
export interface TerminalSize {
  columns?: number;
  rows?: number;
}

/** What is added to a mode: paths with everything in them, and the network. */
export interface Additional {
  write?: string[];
  read?: string[];
  network?: boolean;
}

/** Exactly one of sandboxPermissions and additional is given. */
export interface EscalationParams {
  runId: string;
  sandboxPermissions?: Mode;
  additional?: Additional;
  justification: string;
  newRunId?: string;
}

export interface StreamText {
  text: string;
  bytes: number;
  truncated: boolean;
  spillPath?: string;
}

export interface Denial {
  op: string;
  path?: string;
  address?: string;
  errno?: string;
  exe?: string;
  evidence: 'observed' | 'stderr';
  count: number;
  incidental?: boolean;
}

export interface FacetReport {
  state: FacetState;
  reason?: string;
}

export interface SandboxFacts {
  mode: Mode;
  provider?: string;
  enforcement?: 'full' | 'partial';
  facets?: Partial<Record<Facet, FacetReport>>;
  denied: boolean;
  denials?: Denial[];
  planted?: string[];
  skippedRoots?: string[];
  runnerFailed?: boolean;
}

export interface ApprovalFacts {
  outcome: 'allowed-once' | 'allowed-session' | 'allowed-always' | 'rejected' | 'cancelled' | 'timed-out' | 'unavailable';
  by: 'limits' | 'policy' | 'memory' | 'grant' | 'person' | 'default';
  reason: string;
}

/** What requestEscalation could be asked for; additional is the narrowest. */
export interface EscalationHint {
  targets: Mode[];
  additional?: Additional;
}

export interface RunResult {
  runId: string;
  status: Status;
  exitCode?: number;
  signal?: string;
  timedOut: boolean;
  durationMs: number;
  stdout: StreamText;
  stderr: StreamText;
  outputMissing?: string;
  sandbox?: SandboxFacts;
  approval?: ApprovalFacts;
  escalation?: EscalationHint;
  modelText: string;
  error?: WireError;
}

export interface WireError {
  code: number;
  message: string;
  data?: FailureData;
}

/** The data of an error with code requestFailed. */
export interface FailureData {
  code: string;
  detail?: string;
  remedies?: string[];
  started?: boolean;
  path?: string;
}

/** One piece of output; data or base64 holds it. */
export interface Output {
  runId: string;
  seq: number;
  stream: Stream;
  offset: number;
  data?: string;
  base64?: string;
  skipped?: number;
}

export interface RunParams {
  runId: string;
}

export interface KillResult {
  runId: string;
  killed: boolean;
}

export interface WriteParams {
  runId: string;
  data?: string;
}

/** How many bytes of what was sent were taken, from its beginning. */
export interface WriteResult {
  runId: string;
  taken: number;
  queued: number;
  open: boolean;
}

export interface ResizeParams {
  runId: string;
  columns: number;
  rows: number;
}

export interface Option {
  optionId: string;
  name: string;
  kind: 'allow_once' | 'allow_always' | 'reject_once' | 'reject_always';
  scope?: 'once' | 'session';
}

export interface Wanted {
  mode?: Mode;
  additional?: Additional;
}

/** What the person is asked. Every text in it was escaped by the server. */
export interface Question {
  id: string;
  runId: string;
  kind: 'command' | 'escalation';
  title: string;
  command: string;
  stdin?: string;
  env?: string[];
  cwd: string;
  mode: Mode;
  wanted: Wanted;
  reason: string;
  justification?: string;
  evidence: Denial[];
  warnings: string[];
  policyHash: string;
  options: Option[];
  defaultOptionId: string;
  expiresAt: string;
  text: string;
  unshown?: number;
}

export interface ApprovalOutcome {
  outcome: 'selected' | 'cancelled';
  optionId?: string;
}

export interface ApprovalAnswer {
  outcome: ApprovalOutcome;
}

export interface ApprovalWithdrawn {
  id: string;
  reason: 'expired' | 'cancelled';
}

export interface CapabilitiesParams {
  wait?: boolean;
}

export interface CapabilitiesChanged {
  state: 'probing' | 'ready';
}

export interface Setting {
  key: string;
  value: unknown;
  origin: string;
}

export interface SettingsProblem {
  severity: 'warning' | 'error';
  message: string;
}

export interface Report {
  provider: string;
  usable: boolean;
  reason?: string;
  remedies?: string[];
  version?: string;
  facets?: Partial<Record<Facet, FacetReport>>;
}

export interface RefusedURI {
  uri: string;
  reason: string;
}

export interface ToolArgument {
  name: string;
  field?: string;
}

/** The shell tool for an agent, and how its arguments map to RunCommandParams. */
export interface Tool {
  name: string;
  description: string;
  inputSchema: Record<string, unknown>;
  arguments: ToolArgument[];
}

export interface Capabilities {
  protocolVersion: number;
  version: string;
  state: 'probing' | 'ready';
  ok: boolean;
  problems: string[];
  mode: Mode;
  provider: string;
  providers: Report[];
  settings: Setting[];
  settingsProblems: SettingsProblem[];
  hints: string[];
  roots: string[];
  refusedRoots: RefusedURI[];
  canAsk: boolean;
  pty: boolean;
  tool: Tool;
}

/** What spares later commands a question, or refuses them without one. */
export interface Approval {
  id: string;
  source: 'person' | 'rule';
  decision: 'allow' | 'ask' | 'deny';
  text: string;
  scope: 'session' | 'settings';
  command: string;
  cwd?: string;
  origin?: string;
  revocable: boolean;
}

export interface ApprovalsParams {
  session?: string;
}

export interface ApprovalsResult {
  approvals: Approval[];
}

export interface RevokeParams {
  id: string;
}

/** The requests that this client sends. */
export interface Requests {
  runCommand: [RunCommandParams, RunResult];
  requestEscalation: [EscalationParams, RunResult];
  capabilities: [CapabilitiesParams, Capabilities];
  'confine/runs/kill': [RunParams, KillResult];
  'confine/runs/write': [WriteParams, WriteResult];
  'confine/runs/resize': [ResizeParams, null];
  'confine/approvals/list': [ApprovalsParams, ApprovalsResult];
  'confine/approvals/revoke': [RevokeParams, null];
}

/** The requests that the server sends. */
export interface ServerRequests {
  'confine/requestApproval': [Question, ApprovalAnswer];
}

/** The notifications that the server sends. */
export interface ServerNotifications {
  'confine/output': Output;
  'confine/exit': RunResult;
  'confine/approvalWithdrawn': ApprovalWithdrawn;
  'confine/capabilitiesChanged': CapabilitiesChanged;
}
