package proto

// ProtocolVersion is the newest version of the confine part of the protocol.
const ProtocolVersion = 1

// Requests and notifications from the editor that are confine's own.
const (
	MethodRunCommand        = "runCommand"
	MethodRequestEscalation = "requestEscalation"
	MethodCapabilities      = "capabilities"
	MethodRunsList          = "confine/runs/list"
	MethodRunsRead          = "confine/runs/read"
	MethodRunsWait          = "confine/runs/wait"
	MethodRunsKill          = "confine/runs/kill"
	MethodRunsWrite         = "confine/runs/write"
	MethodRunsResize        = "confine/runs/resize"
	MethodApprovalsList     = "confine/approvals/list"
	MethodApprovalsRevoke   = "confine/approvals/revoke"
	MethodExplain           = "confine/explain"
)

// Requests and notifications to the editor that are confine's own.
const (
	MethodRequestApproval     = "confine/requestApproval"
	MethodApprovalWithdrawn   = "confine/approvalWithdrawn"
	MethodOutput              = "confine/output"
	MethodRunExit             = "confine/exit"
	MethodCapabilitiesChanged = "confine/capabilitiesChanged"
)

// Methods of the Language Server Protocol that are used.
const (
	MethodInitialize                = "initialize"
	MethodInitialized               = "initialized"
	MethodShutdown                  = "shutdown"
	MethodExit                      = "exit"
	MethodCancelRequest             = "$/cancelRequest"
	MethodProgress                  = "$/progress"
	MethodProgressCreate            = "window/workDoneProgress/create"
	MethodProgressCancel            = "window/workDoneProgress/cancel"
	MethodDidChangeWorkspaceFolders = "workspace/didChangeWorkspaceFolders"
	MethodExecuteCommand            = "workspace/executeCommand"
	MethodShowMessage               = "window/showMessage"
	MethodShowMessageRequest        = "window/showMessageRequest"
	MethodLogMessage                = "window/logMessage"
)

// Commands for workspace/executeCommand. Each is answered at once with a
// Started; what comes of it is told by notification.
const (
	CommandRun      = "confine.server.run"      // argument: RunCommandParams, or the command as a string
	CommandEscalate = "confine.server.escalate" // argument: EscalationParams, or the run id as a string, or none
	CommandKill     = "confine.server.kill"     // argument: RunParams, or the run id as a string
	CommandDoctor   = "confine.server.doctor"   // no argument
)

// ServerCommands lists every command in the order that it is advertised.
var ServerCommands = []string{CommandRun, CommandEscalate, CommandKill, CommandDoctor}

// Method describes one method of the protocol for documents and tests.
type Method struct {
	Name      string
	ToEditor  bool // the server sends it
	BothWays  bool // the server sends it, too
	Params    any  // zero value of the params, nil if there are none
	Result    any  // zero value of the result, a pointer if it may be null; nil for a notification, Null for a request answered with null
	IsRequest bool
}

// Null stands for a result that is JSON null.
type Null struct{}

// Methods lists every method in the order of the document.
var Methods = []Method{
	{Name: MethodInitialize, IsRequest: true, Params: InitializeParams{}, Result: InitializeResult{}},
	{Name: MethodInitialized},
	{Name: MethodShutdown, IsRequest: true, Result: Null{}},
	{Name: MethodExit},
	{Name: MethodCancelRequest, BothWays: true, Params: CancelParams{}},
	{Name: MethodDidChangeWorkspaceFolders, Params: DidChangeWorkspaceFoldersParams{}},
	{Name: MethodRunCommand, IsRequest: true, Params: RunCommandParams{}, Result: RunResult{}},
	{Name: MethodRequestEscalation, IsRequest: true, Params: EscalationParams{}, Result: RunResult{}},
	{Name: MethodCapabilities, IsRequest: true, Params: CapabilitiesParams{}, Result: Capabilities{}},
	{Name: MethodRunsList, IsRequest: true, Params: ListParams{}, Result: ListResult{}},
	{Name: MethodRunsRead, IsRequest: true, Params: ReadParams{}, Result: ReadResult{}},
	{Name: MethodRunsWait, IsRequest: true, Params: WaitParams{}, Result: RunResult{}},
	{Name: MethodRunsKill, IsRequest: true, Params: RunParams{}, Result: KillResult{}},
	{Name: MethodRunsWrite, IsRequest: true, Params: WriteParams{}, Result: WriteResult{}},
	{Name: MethodRunsResize, IsRequest: true, Params: ResizeParams{}, Result: Null{}},
	{Name: MethodApprovalsList, IsRequest: true, Params: ApprovalsParams{}, Result: ApprovalsResult{}},
	{Name: MethodApprovalsRevoke, IsRequest: true, Params: RevokeParams{}, Result: Null{}},
	{Name: MethodExplain, IsRequest: true, Params: RunCommandParams{}, Result: Explanation{}},
	{Name: MethodExecuteCommand, IsRequest: true, Params: ExecuteCommandParams{}, Result: Started{}},
	{Name: MethodProgressCancel, Params: ProgressTokenParams{}},
	{Name: MethodRequestApproval, ToEditor: true, IsRequest: true, Params: Question{}, Result: ApprovalAnswer{}},
	{Name: MethodApprovalWithdrawn, ToEditor: true, Params: ApprovalWithdrawn{}},
	{Name: MethodOutput, ToEditor: true, Params: Output{}},
	{Name: MethodRunExit, ToEditor: true, Params: RunResult{}},
	{Name: MethodCapabilitiesChanged, ToEditor: true, Params: CapabilitiesChanged{}},
	{Name: MethodProgressCreate, ToEditor: true, IsRequest: true, Params: ProgressTokenParams{}, Result: Null{}},
	{Name: MethodProgress, ToEditor: true, Params: ProgressParams{}},
	{Name: MethodShowMessageRequest, ToEditor: true, IsRequest: true, Params: ShowMessageRequestParams{}, Result: (*MessageActionItem)(nil)},
	{Name: MethodShowMessage, ToEditor: true, Params: ShowMessageParams{}},
	{Name: MethodLogMessage, ToEditor: true, Params: LogMessageParams{}},
}
