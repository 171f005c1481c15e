package sandboxtest

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/confine-dev/confine/sandbox"
	"golang.org/x/sys/unix"
)

// limitStories use something up, always under low limits.
var limitStories = []story{
	{"a fork bomb hurts its run only", forkBomb},
	{"limits cannot be raised", limitsStay},
	{"descriptors end", descriptorsEnd},
	{"files end", filesEnd},
	{"temporary files end", temporaryFilesFill},
	{"a flood of files ends", fileFlood},
	{"each resource is reported", limitsReported},
	{"the kernel ends a run before its server when memory runs out", offered},
}

// lowLimits are set in all these stories.
var lowLimits = sandbox.Limits{Processes: 120, OpenFiles: 100, FileSize: 1 << 20, TempSize: 8 << 20}

// withLimits is a command in a session with low limits.
func withLimits(s *sandbox.Spec) { s.Policy.Limits = lowLimits }

// held is the report about a resource.
func held(t *testing.T, f sandbox.Facts, r sandbox.Resource) sandbox.LimitReport {
	t.Helper()
	i := slices.IndexFunc(f.Limits, func(l sandbox.LimitReport) bool { return l.Resource == r })
	if i < 0 {
		t.Fatalf("nothing is said of %s: %+v", r, f.Limits)
	}
	return f.Limits[i]
}

// useUp runs a child that uses a resource up, and returns what stopped it after
// how many.
func (p *place) useUp(t *testing.T, mode sandbox.Mode, session, what string) (sandbox.Result, syscall.Errno, uint64) {
	t.Helper()
	result, output := p.shell(t, mode, session, fmt.Sprintf("%q %s %s", p.program, entryUseUp, what), withLimits)
	var number int
	var count uint64
	if _, err := fmt.Sscan(output, &number, &count); err != nil {
		t.Fatalf("the child said %q, exit code %d, signal %q", output, result.ExitCode, result.Signal)
	}
	return result, syscall.Errno(number), count
}

func forkBomb(t *testing.T, w *place) {
	defer w.confined.CloseSession("bomb")
	result, _ := w.shell(t, sandbox.WorkspaceWrite, "bomb", "true", withLimits)
	report := held(t, result.Facts, sandbox.ProcessCount)
	if report.State == sandbox.Open {
		if report.Limit != 0 || report.Reason == "" {
			t.Errorf("processes are not withLimits, but reported as %+v", report)
		}
		return // it would not end by itself
	}
	_, errno, count := w.useUp(t, sandbox.WorkspaceWrite, "bomb", "processes")
	if errno != unix.EAGAIN || count == 0 || count > report.Limit {
		t.Errorf("processes ended with %v after %d of %+v", errno, count, report)
	}
	w.crowded(t, report)
	// One that goes on: what is outside does not notice.
	bomb, err := w.confined.Start(t.Context(), w.shellSpec(sandbox.WorkspaceWrite, "bomb", "while :; do sleep 1000 & done 2>/dev/null", withLimits))
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		must(t, "well")(w.shell(t, sandbox.WorkspaceWrite, "bomb-neighbour", "(echo well)"))
	}
	bomb.Cancel()
	if _, err := bomb.Wait(); err != nil {
		t.Error(err)
	}
	must(t, "well")(w.shell(t, sandbox.WorkspaceWrite, "bomb", "(echo well)", withLimits))
}

// crowded checks what a person is told where a session's processes are used up. A
// runner makes a user namespace for each run, in which the kernel counts anew.
func (p *place) crowded(t *testing.T, report sandbox.LimitReport) {
	if report.Limit != lowLimits.Processes || p.confined.Name() != sandbox.ProviderLandlock {
		return
	}
	full := make(chan bool, 1)
	spec := p.shellSpec(sandbox.WorkspaceWrite, "bomb", fmt.Sprintf("exec %q %s hold", p.program, entryUseUp), withLimits)
	spec.Output = func(sandbox.Chunk) { full <- true }
	holder, err := p.confined.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	<-full
	_, err = p.confined.Start(t.Context(), p.shellSpec(sandbox.WorkspaceWrite, "bomb", "true", withLimits))
	var unavailable *sandbox.UnavailableError
	if !errors.As(err, &unavailable) || !strings.Contains(unavailable.Detail, "limit of 120 processes") || len(unavailable.Remedies) != 2 {
		t.Errorf("a session without room for processes: got %v", err)
	}
	holder.Cancel()
	holder.Wait()
}

func limitsStay(t *testing.T, w *place) {
	defer w.confined.CloseSession("raise")
	for _, mode := range bothModes {
		if _, errno, raised := w.useUp(t, mode, "raise", "raise"); errno != 0 || raised != 0 {
			t.Errorf("%s: %d limits could be raised (%v)", mode, raised, errno)
		}
	}
}

func descriptorsEnd(t *testing.T, w *place) {
	defer w.confined.CloseSession("descriptors")
	result, errno, count := w.useUp(t, sandbox.WorkspaceWrite, "descriptors", "descriptors")
	if errno != unix.EMFILE || count > lowLimits.OpenFiles {
		t.Errorf("descriptors ended with %v after %d", errno, count)
	}
	if report := held(t, result.Facts, sandbox.OpenFiles); report.State != sandbox.Enforced || report.Limit != lowLimits.OpenFiles {
		t.Errorf("reported as %+v", report)
	}
}

func filesEnd(t *testing.T, w *place) {
	defer w.confined.CloseSession("file")
	result, errno, size := w.useUp(t, sandbox.WorkspaceWrite, "file", "file")
	if report := held(t, result.Facts, sandbox.FileSize); errno != unix.EFBIG || size != 1<<20 || report.State != sandbox.Enforced || report.Limit != 1<<20 || report.Reached {
		t.Errorf("a file ended with %v after %d bytes; reported as %+v", errno, size, report)
	}
	result, _ = w.shell(t, sandbox.WorkspaceWrite, "file", `exec head -c 2000000 /dev/zero > "$TMPDIR/large"`, withLimits)
	if report := held(t, result.Facts, sandbox.FileSize); result.Signal != "SIGXFSZ" || !report.Reached {
		t.Errorf("ended by %q with exit code %d, reported as %+v", result.Signal, result.ExitCode, report)
	}
}

func temporaryFilesFill(t *testing.T, w *place) {
	for _, mode := range bothModes {
		session := "fill-" + string(mode)
		result, _ := w.shell(t, mode, session, "true", withLimits)
		if report := held(t, result.Facts, sandbox.TemporaryFiles); report.State == sandbox.Open {
			if w.level(t) == withNamespaces && !w.alone || report.Limit != 0 || report.Reason == "" {
				t.Errorf("%s: reported as %+v", mode, report)
			}
			continue
		}
		result, errno, size := w.useUp(t, mode, session, "temporary")
		report := held(t, result.Facts, sandbox.TemporaryFiles)
		if errno != unix.ENOSPC || size > 8<<20 || size < 7<<20 || report.Limit != 8<<20 {
			t.Errorf("%s: temporary files ended with %v after %d bytes; reported as %+v", mode, errno, size, report)
		}
		if mode == sandbox.WorkspaceWrite && !report.Reached {
			t.Errorf("the temporary files are full, but reported as %+v", report)
		}
		must(t, "well")(w.shell(t, mode, session+"-neighbour", `echo well > "$TMPDIR/f" && cat "$TMPDIR/f"`, withLimits))
		w.confined.CloseSession(session)
	}
}

func fileFlood(t *testing.T, w *place) {
	defer w.confined.CloseSession("flood")
	result, _ := w.shell(t, sandbox.WorkspaceWrite, "flood", "true", withLimits)
	if held(t, result.Facts, sandbox.TemporaryFiles).State == sandbox.Open {
		return
	}
	result, errno, count := w.useUp(t, sandbox.WorkspaceWrite, "flood", "names")
	if errno != unix.ENOSPC || count > 1024 || !held(t, result.Facts, sandbox.TemporaryFiles).Reached {
		t.Errorf("files ended with %v after %d; limits %+v", errno, count, result.Facts.Limits)
	}
}

// offered looks at the command only: this process, which starts others meanwhile, is
// offered for a moment whenever one begins.
func offered(t *testing.T, w *place) {
	const least = 500
	_, output := w.shell(t, sandbox.WorkspaceWrite, "offered", "cat /proc/self/oom_score_adj")
	if n, err := strconv.Atoi(output); err != nil || n < least {
		t.Errorf("a run adds %s to its badness, want %d at least", output, least)
	}
}

func limitsReported(t *testing.T, w *place) {
	for _, mode := range bothModes {
		result, _ := w.shell(t, mode, "reported", "true")
		if len(result.Facts.Limits) != len(sandbox.Resources) {
			t.Errorf("%s: limits %+v", mode, result.Facts.Limits)
		}
		for _, report := range result.Facts.Limits {
			bounded := report.Resource == sandbox.TemporaryFiles && report.State != sandbox.Open // by itself
			if report.State != sandbox.Open && !bounded || report.State != sandbox.Enforced && strings.TrimSpace(report.Reason) == "" {
				t.Errorf("%s: no limits are asked for, but reported is %+v", mode, report)
			}
		}
	}
}
