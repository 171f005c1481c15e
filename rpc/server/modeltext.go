package server

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/confine-dev/confine/approval"
	"github.com/confine-dev/confine/rpc/proto"
	"github.com/confine-dev/confine/sandbox"
)

// The markers that agents know, byte for byte.
const (
	deniedMarker       = "[sandbox: file access denied under %s mode]"
	escalationMarker   = "[sandbox: escalation available — retry this exact command once with sandbox_permissions (the narrowest wider mode that suffices) + justification; the approval prompt asks the user]"
	runnerFailedMarker = "[sandbox: the sandbox runner itself failed under %s mode — the command did not run; this is a sandbox problem, not a command failure]"
)

// Markers of our own, for what those do not cover.
const (
	networkDeniedMarker = "[sandbox: network access denied under %s mode]"
	runnerBrokeMarker   = "[sandbox: the sandbox runner itself failed under %s mode while the command ran — what it did until then stays done; this is a sandbox problem, not a command failure]"
	runningMarker       = "[running as %s]"
	waitingMarker       = "[not begun yet: %s waits for an answer or its start]"
	timedOutMarker      = "[timed out after %dms]"
	cancelledMarker     = "[cancelled]"
	signalMarker        = "[killed by signal: %s]"
	exitMarker          = "[exit code: %d]"
	limitMarker         = "[sandbox: limit reached: %s]"
	missingMarker       = "[part of the output is missing: %s]"
	plantedMarker       = "[sandbox: made or changed by this command, and used by programs outside by themselves; tell the user: %s]"
)

// maxPlantedInText bounds how many paths of planted files an agent reads.
const maxPlantedInText = 5

// modelText is what an agent should be shown: output, then one marker a line in
// a fixed order. The marker for exit code or signal is the last line.
func modelText(p plan, f facts, r *proto.RunResult) string {
	switch {
	case r.Status == proto.StatusRefused:
		return refusedText(f.decision)
	case f.process == nil && r.Status == proto.StatusCancelled:
		return "Error: the run was cancelled before the command began; nothing was executed."
	case f.process == nil && r.Error != nil && !f.runnerFailed():
		return "Error: " + r.Error.Message
	}
	var t transcript
	if r.Stdout.Bytes == 0 && r.Stderr.Bytes == 0 && r.Status != proto.StatusRunning {
		t.line("(no output)")
	}
	if r.Stdout.Bytes > 0 {
		shown := r.Stdout.Text
		if f.terminal != nil {
			shown = screenText(shown, f.terminal.Columns)
		}
		t.stream("stdout", r.Stdout, shown)
	}
	if r.Stderr.Bytes > 0 {
		t.line("[stderr]")
		t.stream("stderr", r.Stderr, r.Stderr.Text)
	}
	for _, marker := range markers(p, f, r) {
		t.line(marker)
	}
	return t.String()
}

// transcript is output with lines of ours in it, each on a line of its own.
type transcript struct{ strings.Builder }

func (t *transcript) fresh() {
	if s := t.String(); s != "" && !strings.HasSuffix(s, "\n") {
		t.WriteString("\n")
	}
}

func (t *transcript) line(text string) {
	t.fresh()
	t.WriteString(text)
}

// stream writes what is shown of a stream's text and, if that is not all of the
// stream, where the rest is.
func (t *transcript) stream(name string, s proto.StreamText, shown string) {
	t.fresh()
	t.WriteString(shown)
	if !s.Truncated {
		return
	}
	where := s.SpillPath
	if where == "" {
		where = "(unavailable)"
	}
	t.line(fmt.Sprintf("[%s truncated: only the last %d of %d bytes are shown; all of it: %s]", name, len(s.Text), s.Bytes, where))
}

func markers(p plan, f facts, r *proto.RunResult) []string {
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	switch {
	case f.runnerFailed() && f.process == nil:
		add(runnerFailedMarker, p.want.Mode)
	case f.runnerFailed():
		add(runnerBrokeMarker, p.want.Mode)
	case r.Sandbox != nil && r.Sandbox.Denied && onlyNetwork(r.Sandbox.Denials):
		add(networkDeniedMarker, r.Sandbox.Mode)
	case r.Sandbox != nil && r.Sandbox.Denied:
		add(deniedMarker, r.Sandbox.Mode)
	}
	if r.Escalation != nil && len(r.Escalation.Targets) > 0 {
		add("%s", escalationMarker)
	}
	if r.Sandbox != nil && len(r.Sandbox.Planted) > 0 {
		add(plantedMarker, plantedText(r.Sandbox.Planted))
	}
	if r.Sandbox != nil {
		for _, text := range sandbox.ReachedLimits(r.Sandbox.Limits) {
			add(limitMarker, text)
		}
	}
	if r.OutputMissing != "" {
		add(missingMarker, r.OutputMissing)
	}
	if r.TimedOut {
		add(timedOutMarker, r.EffectiveTimeoutMs)
	}
	if r.Status == proto.StatusCancelled {
		add(cancelledMarker)
	}
	switch {
	case r.Status == proto.StatusRunning && f.process == nil:
		add(waitingMarker, p.id)
	case r.Status == proto.StatusRunning:
		add(runningMarker, p.id)
	case r.Signal != "":
		add(signalMarker, r.Signal)
	case r.ExitCode != nil && *r.ExitCode != 0:
		add(exitMarker, *r.ExitCode)
	}
	return lines
}

// plantedText names paths that a command chose: quoted, so that none can pass
// for a marker.
func plantedText(paths []string) string {
	shown := paths[:min(len(paths), maxPlantedInText)]
	var quoted []string
	for _, path := range shown {
		quoted = append(quoted, strconv.QuoteToASCII(path))
	}
	text := strings.Join(quoted, ", ")
	if more := len(paths) - len(shown); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// onlyNetwork reports whether no file was denied, so that the marker about
// files would be wrong.
func onlyNetwork(denials []sandbox.Denial) bool {
	for _, d := range denials {
		if d.Address == "" {
			return false
		}
	}
	return len(denials) > 0
}

// refusedText tells an agent apart what it should do next.
func refusedText(d approval.Decision) string {
	const notRun = " The command did not run."
	switch d.Outcome {
	case approval.Rejected:
		if d.Reason == approval.ReasonNever {
			return "Error: prompts are switched off here, so nothing beyond the configured mode is allowed." + notRun + " Do not ask again; work within the sandbox."
		}
		if d.By == approval.ByPerson || d.By == approval.ByMemory {
			return "Error: the user refused this command." + notRun + " That is final for this command; it says nothing about others."
		}
		if d.By == approval.ByPolicy { // a rule
			return "Error: " + d.Reason + "." + notRun + " Do not ask again, and do not try to do the same in another way."
		}
		return "Error: " + d.Reason + "." + notRun
	case approval.Cancelled:
		if d.By != approval.ByPerson { // the session or the folder is gone
			return "Error: " + d.Reason + "." + notRun
		}
		return "Error: the approval prompt was closed without an answer." + notRun
	case approval.TimedOut:
		return "Error: the approval prompt was not answered in time." + notRun + " The user may be away."
	}
	return "Error: approval could not be had (" + d.Reason + ")." + notRun
}
