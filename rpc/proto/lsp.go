package proto

import (
	"encoding/json"

	"go.lsp.dev/protocol"
)

// The structs of the Language Server Protocol that fit as they are. Fields
// that the library lacks or cannot send faithfully are in our own structs
// below and in the other files.
type (
	ClientInfo                      = protocol.ClientInfo
	ServerInfo                      = protocol.ServerInfo
	InitializeResult                = protocol.InitializeResult
	ServerCapabilities              = protocol.ServerCapabilities
	ExecuteCommandOptions           = protocol.ExecuteCommandOptions
	WorkspaceCapabilities           = protocol.ServerCapabilitiesWorkspace
	WorkspaceFoldersCapabilities    = protocol.ServerCapabilitiesWorkspaceFolders
	WorkspaceFolder                 = protocol.WorkspaceFolder
	DidChangeWorkspaceFoldersParams = protocol.DidChangeWorkspaceFoldersParams
	WorkspaceFoldersChangeEvent     = protocol.WorkspaceFoldersChangeEvent
	MessageType                     = protocol.MessageType
	MessageActionItem               = protocol.MessageActionItem
	ShowMessageParams               = protocol.ShowMessageParams
	ShowMessageRequestParams        = protocol.ShowMessageRequestParams
	LogMessageParams                = protocol.LogMessageParams
	WorkDoneProgressBegin           = protocol.WorkDoneProgressBegin
	WorkDoneProgressEnd             = protocol.WorkDoneProgressEnd
)

// The kinds of messages that are sent.
const (
	MessageError   = protocol.MessageTypeError
	MessageWarning = protocol.MessageTypeWarning
	MessageInfo    = protocol.MessageTypeInfo
)

// The kinds of progress that are sent.
const (
	ProgressBegin = protocol.WorkDoneProgressKindBegin
	ProgressEnd   = protocol.WorkDoneProgressKindEnd
)

// Token names a progress: a string or a number, echoed byte for byte. The
// library's own type is encoded as {} when it is not behind a pointer.
type Token = json.RawMessage

// InitializeParams is what is read of an initialize request.
type InitializeParams struct {
	ProcessID             *int64             `json:"processId"`                       // the editor's; the server ends when that process does
	ClientInfo            *ClientInfo        `json:"clientInfo,omitempty"`            // for logs only
	RootURI               string             `json:"rootUri,omitempty"`               // used only without workspaceFolders
	WorkspaceFolders      []WorkspaceFolder  `json:"workspaceFolders,omitempty"`      // the roots
	Capabilities          ClientCapabilities `json:"capabilities"`                    // see ClientConfine
	InitializationOptions json.RawMessage    `json:"initializationOptions,omitempty"` // settings, which only tighten unless the server was told to trust the editor
}

// ClientCapabilities is what is read of a client's capabilities.
type ClientCapabilities struct {
	Window *WindowCapabilities `json:"window,omitempty"`

	// Experimental holds ClientExperimental; other extensions put anything
	// there, so it is decoded apart.
	Experimental json.RawMessage `json:"experimental,omitempty"`
}

// WindowCapabilities is what is read of a client's window capabilities. Whether
// it shows message requests is not read: some that do never say so.
type WindowCapabilities struct {
	WorkDoneProgress bool `json:"workDoneProgress,omitempty"`
}

// ClientExperimental is the part of ClientCapabilities.Experimental that is
// confine's.
type ClientExperimental struct {
	Confine *ClientConfine `json:"confine,omitempty"`
}

// ServerExperimental is ServerCapabilities.Experimental.
type ServerExperimental struct {
	Confine ServerConfine `json:"confine"`
}

// CancelParams names the request to cancel, by its id as it was sent.
type CancelParams struct {
	ID json.RawMessage `json:"id"`
}

// ProgressParams carries a WorkDoneProgressBegin or a WorkDoneProgressEnd.
type ProgressParams struct {
	Token Token `json:"token"`
	Value any   `json:"value"`
}

// ProgressTokenParams creates or cancels a progress.
type ProgressTokenParams struct {
	Token Token `json:"token"`
}

// ExecuteCommandParams runs one of the commands named in ServerCommands.
type ExecuteCommandParams struct {
	Command       string            `json:"command"`
	Arguments     []json.RawMessage `json:"arguments,omitempty"`
	WorkDoneToken Token             `json:"workDoneToken,omitempty"`
}
