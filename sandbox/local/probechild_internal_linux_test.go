package local

import (
	"errors"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/confine-dev/confine/sandbox"
)

// tried makes one trial in this process.
func tried(t *testing.T, title string, o probeOrders) attempt {
	t.Helper()
	trial, ok := trialByTitle()[title]
	if !ok {
		t.Fatalf("there is no trial %q", title)
	}
	return trial.make(o)
}

// Each trial has a name of its own, by which child and server speak of it, and
// those with a file of their own one that can be the name of a file.
func TestTrialsAreNamed(t *testing.T) {
	if got := len(trialByTitle()); got != len(trials) {
		t.Errorf("%d trials have %d names", len(trials), got)
	}
	tried := map[sandbox.Facet]bool{}
	for _, trial := range trials {
		tried[trial.facet] = true
		if trial.hasVictim() && filepath.Base(trial.name) != trial.name {
			t.Errorf("%q cannot be the name of a file", trial.name)
		}
		if trial.blind && trial.seen == nil {
			t.Errorf("nobody can tell what came of %q", trial.name)
		}
	}
	for _, facet := range sandbox.Facets {
		if !tried[facet] {
			t.Errorf("nothing tries %s", facet)
		}
	}
}

// A process inside that has the server's number is not the server.
func TestProbeTellsProcessesApart(t *testing.T) {
	cmd := exec.Command("sleep", "60") // this process itself is protected
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	server, ok := readProcess(cmd.Process.Pid)
	if !ok {
		t.Fatal("the line of the process table cannot be read")
	}
	for started, want := range map[uint64]sandbox.Outcome{server.start: sandbox.Possible, server.start + 1: sandbox.Refused} {
		o := probeOrders{Server: pinned{server.pid, started}}
		for _, title := range []string{"processes: signal confine", "processes: open the memory of confine"} {
			if got := tried(t, title, o); got.Outcome != want {
				t.Errorf("a process that started at %d, the server at %d: %+v", started, server.start, got)
			}
		}
	}
}

func TestProbeOpensADevice(t *testing.T) {
	for device, want := range map[string]sandbox.Outcome{"/dev/null": sandbox.Possible, "/dev/no-such-device": sandbox.Refused, "": sandbox.Untried} {
		if got := tried(t, "devices: open a device of the host for writing", probeOrders{Device: device}); got.Outcome != want || want == sandbox.Untried && got.Detail == "" {
			t.Errorf("opening %q: %+v", device, got)
		}
	}
}

// With nothing confined these trials are possible for everybody: one that is
// refused could not tell a sandbox from none.
func TestEveryTrialCanSucceed(t *testing.T) {
	t.Setenv("TMPDIR", "/tmp") // a socket's path must be short
	e, err := New(&countingWrapper{}, Options{StateDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	free, err := e.possible(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	pipe := "unixSockets: write to a FIFO of the host"
	if belowTemp(e.home.dir) {
		pipe += " that is shown below /tmp"
	}
	for _, title := range []string{
		"fileWrite: create a file outside", "fileWrite: write to a file outside", "fileWrite: create a file beside confine's own folder",
		"fileWrite: create a file in the workspace", "fileWrite: truncate a file outside", "fileWrite: remove a file outside",
		"fileWrite: rename a file outside", "fileWrite: move a file of one's own over one outside", "fileWrite: link a file outside to where one can write",
		"fileWrite: make a folder outside", "fileWrite: make a link outside", "fileWrite: write outside through a link of one's own",
		"fileWrite: open a file outside again for writing by its descriptor", "metadata: change the mode of a file outside",
		"metadata: change the times of a file outside", "metadata: change the owner of a file outside", "metadata: change the mode of a file outside by its descriptor",
		"network: connect to a server of the host", "network: send a datagram to a server of the host",
		"unixSockets: connect to an abstract socket of the host", pipe, "unixSockets: connect to a socket in /tmp",
		"unixSockets: connect to a socket in an ordinary folder", "unixSockets: attach to shared memory of the host",
		"processes: signal confine", "processes: signal a process", "processes: signal a process by its descriptor", "processes: see a process",
		"processes: limit a process", "processes: lower the priority of a process", "processes: choose the processors of a process",
		"devices: type into a terminal", "fileRead: read a file of confine's own",
		"fileRead: read a hidden file", "fileRead: read a file in a hidden folder", "fileRead: read a hidden file by another spelling",
		"fileRead: read a hidden file through a link", "fileRead: read a file in a hidden folder through a link", "fileRead: read a hidden file by a second name",
	} {
		if got := free[title]; got.Outcome != sandbox.Possible {
			t.Errorf("%s: %+v", title, got)
		}
	}
}

// What a trial lacks is no refusal.
func TestUntriedIsNotRefused(t *testing.T) {
	broken := trial{facet: sandbox.Network, name: "shout", try: func(probeOrders, string) error { return need(errors.New("no voice")) }}
	if got := broken.make(probeOrders{}); got.Outcome != sandbox.Untried || got.Detail == "" {
		t.Errorf("it is %+v", got)
	}
}
