package local

import (
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/confine-dev/confine/sandbox"
	"golang.org/x/sys/unix"
)

// mkdirObserver counts the folders that are made. It answers only as long as it
// may.
type mkdirObserver struct {
	may func(n int) bool // whether the n-th call, from 0, is answered

	mu      sync.Mutex
	watches []*mkdirWatch // guarded by mu
}

func (o *mkdirObserver) Filter(bool) []unix.SockFilter {
	return []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_MKDIRAT, Jt: 1},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: mkdirNumber, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_USER_NOTIF},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
}

func (o *mkdirObserver) Watch(listener *os.File, run Watched) Watch {
	w := &mkdirWatch{run: run, in: &standIn{listener: listener, progress: run.Progress}, done: make(chan struct{})}
	o.mu.Lock()
	o.watches = append(o.watches, w)
	o.mu.Unlock()
	go w.answer(o.may)
	return w
}

type mkdirWatch struct {
	run  Watched
	in   *standIn
	seen int // set by answer, read after done
	done chan struct{}
}

func (w *mkdirWatch) answer(may func(int) bool) {
	defer close(w.done)
	for ; may(w.seen); w.seen++ {
		poll := []unix.PollFd{{Fd: int32(w.in.listener.Fd()), Events: unix.POLLIN}}
		for {
			if n, _ := unix.Poll(poll, -1); n > 0 {
				break
			}
		}
		if poll[0].Revents&unix.POLLIN == 0 {
			return
		}
		atomic.AddUint64(&w.run.Progress.Received, 1)
		w.in.pass()
	}
}

func (w *mkdirWatch) End() Observed {
	<-w.done
	w.in.listener.Close()
	o := Observed{Observation: sandbox.Observation{State: sandbox.ObservedFully}}
	if w.seen > 0 {
		o.Denials = []sandbox.Denial{{Op: "create", Path: "/seen", Evidence: sandbox.Observed, Count: w.seen}}
	}
	return o
}

func always(int) bool { return true }

// openWrapper confines nothing: it is for what goes on around a command.
type openWrapper struct{ runnerWrapper }

func (openWrapper) Wrap(r Request) (*Launch, error) {
	l := &Launch{Namespaces: r.Namespaces, Env: map[string]string{}}
	if r.Namespaces {
		l.Prepare.Call("mounting /proc", unix.SYS_MOUNT, Text("proc"), Text("/proc"), Text("proc"), Int(0), Int(0))
	}
	l.Confine.Call("giving up privileges", unix.SYS_PRCTL, Int(unix.PR_SET_NO_NEW_PRIVS), Int(1), Int(0), Int(0), Int(0))
	return l, nil
}

// launches are the ways in which a command is started, on both levels.
func launches(t *testing.T, f *runnerFixture) map[string]func(*testing.T, sandbox.Spec) *run {
	bwrap := needBubblewrap(t)
	ways := map[string]func(*testing.T, sandbox.Spec) *run{}
	for name, w := range map[string]Wrapper{"direct": openWrapper{}, "runner": runnerWrapper{program: bwrap, args: bubblewrapArgs("--bind", f.root.Path, f.root.Path)}} {
		for level, namespaces := range map[string]bool{" with namespaces": true, " without": false} {
			ways[name+level] = func(t *testing.T, spec sandbox.Spec) *run {
				r, err := f.launch(t, w, namespaces, spec)
				if err != nil {
					t.Fatal(err)
				}
				return r
			}
		}
	}
	return ways
}

// Where the kernel cannot show calls, commands run as if there were no observer,
// and the result says why nothing was seen.
func TestKernelWithoutObservation(t *testing.T) {
	f := newRunnerFixture(t)
	f.engine.options.Observer = &mkdirObserver{may: func(int) bool { t.Error("the observer was asked"); return true }}
	f.engine.kernel.unobservable = "too old"
	for name, launch := range launches(t, f) {
		t.Run(name, func(t *testing.T) {
			r := launch(t, f.spec(`d=$(mktemp -u ./XXXXXX); mkdir $d`))
			result, err := r.Wait()
			if err != nil || result.ExitCode != 0 || len(result.Denials) != 0 {
				t.Errorf("the command ended with %+v, %v", result, err)
			}
			if want := (sandbox.Observation{State: sandbox.NotObserved, Reason: "too old"}); result.Observation != want {
				t.Errorf("the observation is %+v", result.Observation)
			}
		})
	}
}

// An observer sees what the command does and nothing of the sandbox's own.
func TestObserverIsGivenTheListener(t *testing.T) {
	f := newRunnerFixture(t)
	o := &mkdirObserver{may: always}
	f.engine.options.Observer = o
	for name, launch := range launches(t, f) {
		t.Run(name, func(t *testing.T) {
			o.watches = nil
			r := launch(t, f.spec(`d=$(mktemp -u ./XXXXXX); mkdir $d $d/a $d/b; (mkdir $d/c; setsid mkdir $d/d); wait`))
			result, err := r.Wait()
			if err != nil || result.ExitCode != 0 {
				t.Fatalf("the command ended with %+v, %v", result, err)
			}
			if len(result.Denials) != 1 || result.Denials[0].Count != 5 || result.Observation.State != sandbox.ObservedFully {
				t.Errorf("seen were %+v, %+v", result.Denials, result.Observation)
			}
			w := o.watches[0].run
			if w.Policy.Mode != sandbox.WorkspaceWrite || w.Namespaces == strings.HasPrefix(name, "direct without") || w.Progress.Received != 5 {
				t.Errorf("the observer was told %+v", w)
			}
		})
	}
	if left := len(f.engine.guard.held); left != 0 {
		t.Errorf("%d listeners are held", left)
	}
}

// A command whose observer answers no more goes on: the guardian lets its calls
// pass, and the result says that they were not seen.
func TestGuardianStandsIn(t *testing.T) {
	for name := range launches(t, newRunnerFixture(t)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newRunnerFixture(t) // of its own: it has one wrapper at a time
			f.engine.options.Observer = &mkdirObserver{may: func(n int) bool { return n < 2 }}
			r := launches(t, f)[name](t, f.spec(`d=$(mktemp -u ./XXXXXX); for i in 1 2 3 4 5 6; do mkdir -p $d/$i || exit 1; done; ls $d`))
			result, err := r.Wait()
			out, _ := r.Output(sandbox.StdoutStream).Tail()
			if err != nil || result.ExitCode != 0 || out != "1\n2\n3\n4\n5\n6\n" {
				t.Errorf("the command ended with %+v, %v: %q", result, err, out)
			}
			if o := result.Observation; o.State != sandbox.ObservedPartly || o.Reason == "" || o.Omitted < 4 {
				t.Errorf("the result says %+v", o)
			}
		})
	}
}

// A guardian that was killed is followed by one that knows the same runs.
func TestNextGuardianStandsInToo(t *testing.T) {
	f := newRunnerFixture(t)
	killed := make(chan struct{})
	f.engine.options.Observer = &mkdirObserver{may: func(n int) bool {
		if n == 1 {
			<-killed
		}
		return n < 1
	}}
	first := launches(t, f)["direct without"]
	spec := f.spec(`mkdir a; echo ready; read -r x; mkdir b c; ls -d a b c`)
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	spec.Stdin = in
	r := first(t, spec)
	g := f.engine.guard
	guardian := func() (pid int, told int) {
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.pid, len(g.told)
	}
	await(t, "the guardian to be told", func() bool { _, told := guardian(); return told == 1 })
	old, _ := guardian()
	unix.Kill(old, unix.SIGKILL)
	await(t, "another guardian", func() bool { pid, _ := guardian(); return pid != 0 && pid != old })
	close(killed)
	out.WriteString("go\n")
	out.Close()
	result, err := r.Wait()
	if text, _ := r.Output(sandbox.StdoutStream).Tail(); err != nil || result.ExitCode != 0 || text != "ready\na\nb\nc\n" {
		t.Errorf("the command ended with %+v, %v: %q", result, err, text)
	}
	if result.Observation.State != sandbox.ObservedPartly {
		t.Errorf("the result says %+v", result.Observation)
	}
}

// await polls what nobody tells.
func await(t *testing.T, what string, when func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !when(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}
