package seatbelt

import (
	"errors"
	"io/fs"
	"os"
	"strings"

	"github.com/confine-dev/confine/sandbox"
)

// program is looked for nowhere else: PATH is not to choose what confines.
const program = "/usr/bin/sandbox-exec"

// Wrapper is the front by which package local confines commands on macOS.
type Wrapper struct{}

// Name implements local.Front.
func (Wrapper) Name() string { return sandbox.ProviderSeatbelt }

// Kind implements local.Front.
func (Wrapper) Kind() string { return "macos-seatbelt" }

// Argv implements local.Front.
func (Wrapper) Argv(p sandbox.Policy, own, state []string) ([]string, error) {
	s := Session{Own: own, State: state}
	for _, path := range p.Protected {
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			s.Absent = append(s.Absent, path)
		}
	}
	profile, err := Build(p, s)
	if err != nil {
		return nil, err
	}
	return profile.argv(), nil
}

// argv are the program and its arguments before those of the command.
func (p Profile) argv() []string {
	argv := []string{program, "-p", p.Text}
	for _, param := range p.Params {
		argv = append(argv, "-D", param.Name+"="+param.Value)
	}
	return argv
}

// Facets implements local.Front.
func (Wrapper) Facets(p sandbox.Policy) map[sandbox.Facet]sandbox.FacetReport {
	enforced := sandbox.FacetReport{State: sandbox.Enforced}
	partial := func(reason string) sandbox.FacetReport {
		return sandbox.FacetReport{State: sandbox.Partial, Reason: reason}
	}
	facets := map[sandbox.Facet]sandbox.FacetReport{
		sandbox.FileWrite: enforced,
		sandbox.FileRead:  enforced,
		sandbox.Network:   enforced,
		sandbox.UnixSockets: partial("sockets in the roots can be reached, and services of the system that answer questions; " +
			"others, and sockets elsewhere, cannot"),
		sandbox.Processes: partial("other processes can be seen, though neither signalled nor looked into; one that begins a session of its own is not ended with the command"),
		sandbox.Metadata:  enforced,
		sandbox.Devices:   {State: sandbox.Unverified, Reason: "the profile closes them, and none was tried"},
	}
	if p.Network {
		facets[sandbox.Network] = sandbox.FacetReport{State: sandbox.Open, Reason: "the host's network is granted"}
	}
	if p.Gaps != "" && p.Mode == sandbox.WorkspaceWrite {
		facets[sandbox.FileWrite] = partial("there may be more to protect in the workspace: " + p.Gaps)
	}
	return facets
}

// Explain implements local.Front.
func (Wrapper) Explain(said string) (detail string, remedies []string) {
	said = strings.TrimSpace(said)
	switch {
	case strings.Contains(said, "sandbox_apply: Operation not permitted"):
		return "confine runs in a sandbox of macOS already, inside of which no second one can be made",
			[]string{"start the editor outside of its sandbox", `if what is around confine confines commands well enough, set sandbox_mode = "external-sandbox"`}
	case strings.Contains(said, "no such file or directory") || strings.Contains(said, "No such file or directory"):
		return program + " cannot be started: " + said, []string{"this version of macOS may not have it any more; see whether a newer confine does without"}
	case said == "":
		return program + " ended without a word before the command began", nil
	}
	return program + " failed before the command began: " + said, []string{`report it with "confine doctor --report": the profile should be valid on every macOS`}
}
