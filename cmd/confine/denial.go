package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/confine-dev/confine/rpc/proto"
	"github.com/confine-dev/confine/sandbox"
)

// maxDenialsShown bounds what a person has to read.
const maxDenialsShown = 5

func denied(result proto.RunResult) bool {
	return result.Sandbox != nil && result.Sandbox.Denied
}

// nextStep is the narrowest thing to ask for that would help, if there is any
// and somebody can be asked.
func nextStep(result proto.RunResult) (step proto.EscalationParams, ok bool) {
	hint := result.Escalation
	switch {
	case hint == nil:
		return step, false
	case hint.Additional != nil:
		step.Additional = hint.Additional
	case len(hint.Targets) > 0:
		step.SandboxPermissions = hint.Targets[0]
	default:
		return step, false
	}
	return step, true
}

// printDenials says what the sandbox refused.
func printDenials(result proto.RunResult) {
	denials := result.Sandbox.Denials
	if len(denials) == 0 {
		printNote("the sandbox (%s) refused something", result.Sandbox.Mode)
	}
	for i, d := range denials {
		if i == maxDenialsShown {
			printNote("and %d more", len(denials)-i)
			break
		}
		printNote("the sandbox (%s) refused: %s", result.Sandbox.Mode, describe(d))
	}
	if o := result.Sandbox.Observation; o != nil && o.Omitted > 0 {
		printNote("and %d more operations, of which no record was kept", o.Omitted)
	}
}

func describe(d sandbox.Denial) string {
	object := d.Path
	if object == "" {
		object = d.Address
	}
	text := d.Op
	if object != "" {
		text += " " + printable(object) // on one line, whatever is in it
	}
	if d.Errno != "" {
		text += " (" + d.Errno + ")"
	}
	if d.Count > 1 {
		text += fmt.Sprintf(", %d times", d.Count)
	}
	return text
}

// helpfulMode is the narrowest of some modes under which what was refused would
// work, or the widest if that cannot be told. Modes go from narrow to wide.
func helpfulMode(result proto.RunResult, modes []sandbox.Mode, workspace string) sandbox.Mode {
	widest := modes[len(modes)-1]
	if !slices.Contains(modes, sandbox.WorkspaceWrite) || len(result.Sandbox.Denials) == 0 {
		return widest
	}
	if real, err := filepath.EvalSymlinks(workspace); err == nil {
		workspace = real
	}
	for _, d := range result.Sandbox.Denials {
		if d.Op == "read" || d.Path == "" || !sandbox.Within(d.Path, workspace) { // what is hidden stays so
			return widest
		}
	}
	return sandbox.WorkspaceWrite
}

// wideningHint says how the command could be run wider.
func wideningHint(result proto.RunResult, workspace string) string {
	for _, d := range result.Sandbox.Denials {
		if d.Address != "" && !strings.HasPrefix(d.Address, "@") { // an abstract socket stays out of reach
			return "to let the command reach the network, run it again with --network"
		}
	}
	// Not only what may be asked for: who types a command may name any mode.
	mode := helpfulMode(result, result.Sandbox.Mode.WiderModes(), workspace)
	if mode == sandbox.WorkspaceWrite {
		return fmt.Sprintf("to let the command write below %s, run it again with --mode %s", printable(workspace), mode)
	}
	return fmt.Sprintf("to run the command without a sandbox, if you trust it, run it again with --mode %s", mode)
}
