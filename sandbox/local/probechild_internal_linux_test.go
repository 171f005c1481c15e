package local

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/confine-dev/confine/sandbox"
)

// A process inside that has the server's number is not the server.
func TestProbeTellsProcessesApart(t *testing.T) {
	self, ok := readProcess(os.Getpid())
	if !ok {
		t.Fatal("our own line of the process table cannot be read")
	}
	for started, refused := range map[uint64]bool{self.start: false, self.start + 1: true} {
		p := &prober{}
		p.processes(probeOrders{Server: self.pid, Started: started})
		if signalled := p.checks[0]; signalled.OK != refused {
			t.Errorf("a process that started at %d, ours at %d: %+v", started, self.start, signalled)
		}
	}
}

// What was not tried is not called enforced.
func TestConfirmWithoutACheck(t *testing.T) {
	claims := map[sandbox.Facet]sandbox.FacetReport{sandbox.Network: {State: sandbox.Enforced}, sandbox.FileWrite: {State: sandbox.Enforced}}
	got := confirm(claims, []sandbox.Check{{Name: "fileWrite: a", OK: true}})
	if got[sandbox.Network].State != sandbox.Open || got[sandbox.Network].Reason == "" || got[sandbox.FileWrite].State != sandbox.Enforced {
		t.Errorf("the facets are %+v", got)
	}
}

func TestProbeOpensADevice(t *testing.T) {
	for device, refused := range map[string]bool{"/dev/null": false, "/dev/no-such-device": true} {
		dir := t.TempDir()
		t.Setenv("TMPDIR", dir) // where the prober writes
		p := &prober{}
		p.files(probeOrders{File: filepath.Join(dir, "file"), Beside: dir, Device: device})
		found := false
		for _, c := range p.checks {
			if c.Name == "devices: a device of the host can be opened" {
				found = true
				if c.OK != refused {
					t.Errorf("opening %s: %+v", device, c)
				}
			}
		}
		if !found {
			t.Errorf("%s was not tried", device)
		}
	}
}
