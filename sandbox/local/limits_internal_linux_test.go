package local

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/confine-dev/confine/sandbox"
	"golang.org/x/sys/unix"
)

func TestReleaseSince(t *testing.T) {
	for _, test := range []struct {
		release string
		want    bool
	}{
		{"6.14.0", true}, {"6.14-rc1", true}, {"6.18.44-cloud", true}, {"7.0.1", true}, {"10.1", true},
		{"6.13.9", false}, {"6.1.0-37-cloud-amd64", false}, {"5.14.0", false}, {"4.20", false},
		{"", false}, {"six", false}, {"6", false},
	} {
		if got := releaseSince(test.release, 6, 14); got != test.want {
			t.Errorf("%q is 6.14 or newer: %t", test.release, got)
		}
	}
}

// TestLimitsAreNeverRaised: what the person is held to stays a bound, and a soft
// limit stays where it is.
func TestLimitsAreNeverRaised(t *testing.T) {
	infinite := uint64(unix.RLIM_INFINITY)
	for _, test := range []struct {
		now   unix.Rlimit
		asked uint64
		want  unix.Rlimit
	}{
		{unix.Rlimit{Cur: 1024, Max: 4096}, 100, unix.Rlimit{Cur: 100, Max: 100}},
		{unix.Rlimit{Cur: 1024, Max: 4096}, 2000, unix.Rlimit{Cur: 1024, Max: 2000}},
		{unix.Rlimit{Cur: 1024, Max: 4096}, 5000, unix.Rlimit{Cur: 1024, Max: 4096}},
		{unix.Rlimit{Cur: infinite, Max: infinite}, 5000, unix.Rlimit{Cur: 5000, Max: 5000}},
		{unix.Rlimit{Cur: 1, Max: 1}, infinite, unix.Rlimit{Cur: 1, Max: 1}},
	} {
		b := &bounds{}
		if hard := b.addFrom("limiting", unix.RLIMIT_NOFILE, test.now, test.asked); b.limits[0].value != test.want || hard != test.want.Max || b.of(unix.RLIMIT_NOFILE) != hard {
			t.Errorf("%+v, asked for %d: got %+v and %d", test.now, test.asked, b.limits[0].value, hard)
		}
	}
}

func TestBoundProcesses(t *testing.T) {
	running, ok := tasksRunning()
	if !ok || running == 0 {
		t.Fatalf("%d processes run (%t)", running, ok)
	}
	for _, test := range []struct {
		counting    counting
		asked       uint64
		least, most uint64 // of what is set
	}{
		{countNone, 5000, 0, 0},
		{countNamespace, 5, 5, 5},
		{countUser, 5, 6, 1 << 16},
		{countNumbers, 5000, 5300, 1 << 16}, // more only with very many processors
		{countNumbers, maxTasks, maxTasks, maxTasks},
	} {
		b := &bounds{counting: test.counting}
		b.boundProcesses(test.asked)
		if b.processes < test.least || b.processes > test.most {
			t.Errorf("%v: %d processes are %d", test.counting, test.asked, b.processes)
		}
	}
}

// TestReports: a limit is called what trials confirmed, and nothing if none is set.
func TestReports(t *testing.T) {
	asked := sandbox.Limits{OpenFiles: 7, TempSize: 1 << 20}
	b := &bounds{memory: asked.TempRoom()}
	b.addFrom("limiting", unix.RLIMIT_NOFILE, unix.Rlimit{Cur: 10, Max: 10}, asked.OpenFiles)
	enforced, open := sandbox.FacetReport{State: sandbox.Enforced}, sandbox.FacetReport{State: sandbox.Open, Reason: "it was tried"}
	confirmed := map[sandbox.Facet]sandbox.FacetReport{limitFacet(sandbox.ProcessCount): enforced, limitFacet(sandbox.Memory): open, limitFacet(sandbox.Disk): open,
		limitFacet(sandbox.OpenFiles): enforced, limitFacet(sandbox.FileSize): open, limitFacet(sandbox.TemporaryFiles): enforced}
	want := []sandbox.LimitReport{
		{Resource: sandbox.ProcessCount, State: sandbox.Open, Reason: "no limit is set"},
		{Resource: sandbox.Memory, State: sandbox.Open, Reason: "it was tried"},
		{Resource: sandbox.OpenFiles, Limit: 7, State: sandbox.Enforced},
		{Resource: sandbox.FileSize, State: sandbox.Open, Reason: "it was tried"},
		{Resource: sandbox.TemporaryFiles, Limit: 1 << 20, State: sandbox.Enforced},
		{Resource: sandbox.Disk, State: sandbox.Open, Reason: "it was tried"},
	}
	got := b.reports(confirmed)
	if len(got) != len(want) {
		t.Fatalf("got %+v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("got %+v, want %+v", got[i], want[i])
		}
	}
}

// TestOnePastProcesses: the trial must be able to find that nothing counts.
func TestOnePastProcesses(t *testing.T) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &limit); err != nil {
		t.Fatal(err)
	}
	err := onePastProcesses()
	switch counted := !isMachineRoot() && limit.Max != unix.RLIM_INFINITY; {
	case counted && err != unix.EAGAIN:
		t.Errorf("got %v, want EAGAIN where the kernel counts", err)
	case !counted && err != nil:
		t.Errorf("got %v where the kernel does not count", err)
	}
	if out, err := exec.Command("/bin/sh", "-c", "(exit 0) && echo well").Output(); err != nil || string(out) != "well\n" {
		t.Errorf("afterwards this process cannot start others: %v", err)
	}
}

// TestOffering: the process is as before when its child was cloned.
func TestOffering(t *testing.T) {
	own := func() string {
		text, err := os.ReadFile("/proc/self/oom_score_adj")
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(text))
	}
	openBadness()
	before := own()
	done := offering()
	if n, err := strconv.Atoi(own()); err != nil || n < badness {
		t.Errorf("while a child is cloned the badness is %d, %v", n, err)
	}
	done()
	if after := own(); after != before {
		t.Errorf("the badness was %s and is %s", before, after)
	}
}
