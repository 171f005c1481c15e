package local

import (
	"os"
	"testing"
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
