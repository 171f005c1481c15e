package server

import (
	"errors"
	"fmt"

	"github.com/confine-dev/confine/rpc"
	"github.com/confine-dev/confine/rpc/proto"
	"github.com/confine-dev/confine/sandbox"
)

// wireError is the one place where Go errors become errors of the protocol.
func wireError(err error) *rpc.Error {
	var (
		wire        *rpc.Error
		unavailable *sandbox.UnavailableError
		start       *sandbox.StartError
		recording   *notRecordedError
		changed     *grantChangedError
		settings    *settingsError
		outdated    *settingsChangedError
	)
	switch {
	case errors.As(err, &wire):
		return wire
	case errors.As(err, &unavailable):
		return failed(unavailable, proto.FailureData{
			Code:     proto.FailureSandboxUnavailable,
			Name:     proto.UnavailableName,
			Mode:     unavailable.Mode,
			Detail:   unavailable.Detail,
			Remedies: append([]string{}, unavailable.Remedies...),
			Started:  unavailable.Started,
		})
	case errors.As(err, &start):
		return failed(start, proto.FailureData{Code: string(start.Kind), Path: start.Path})
	case errors.As(err, &changed):
		return failed(changed, proto.FailureData{Code: proto.FailureGrantChanged, Path: changed.path})
	case errors.As(err, &settings):
		return failed(settings, proto.FailureData{Code: proto.FailureSettings, Detail: settings.reason})
	case errors.As(err, &outdated):
		return failed(outdated, proto.FailureData{Code: proto.FailureSettingsChanged})
	case errors.As(err, &recording):
		return failed(recording, proto.FailureData{Code: proto.FailureNotRecorded, Detail: recording.err.Error()})
	}
	return rpc.Errorf(proto.CodeInternalError, "%v", err)
}

func failed(err error, data proto.FailureData) *rpc.Error {
	return &rpc.Error{Code: proto.CodeRequestFailed, Message: err.Error(), Data: data}
}

// limitReached is an error about what the server does not do at once.
func limitReached(code, message string) error {
	return &rpc.Error{Code: proto.CodeRequestFailed, Message: message, Data: proto.FailureData{Code: code}}
}

// invalid is an error in what the editor sent.
func invalid(format string, args ...any) error {
	return rpc.Errorf(proto.CodeInvalidParams, format, args...)
}

// notRecordedError says that a decision could not be written to the audit.
type notRecordedError struct{ err error }

func (e *notRecordedError) Error() string {
	return "the command did not run because the audit could not be written: " + e.err.Error()
}

func (e *notRecordedError) Unwrap() error { return e.err }

// grantChangedError says that a file or folder is not the one of the question.
type grantChangedError struct {
	path string
	err  error
}

func (e *grantChangedError) Error() string {
	return fmt.Sprintf("the command did not run because what was granted changed after the question: %v; ask again", e.err)
}

func (e *grantChangedError) Unwrap() error { return e.err }

// errorObject is an error of the protocol inside a run result.
func errorObject(err error) *proto.Error {
	wire := wireError(err)
	object := &proto.Error{Code: wire.Code, Message: wire.Message}
	if data, ok := wire.Data.(proto.FailureData); ok {
		object.Data = &data
	}
	return object
}
