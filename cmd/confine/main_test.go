package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/confine-dev/confine/sandbox/local"
	"github.com/confine-dev/confine/sandbox/ramtest"
)

// asConfine makes the test binary be confine, so that tests run the real
// program without building it again.
const asConfine = "CONFINE_TEST_AS_CONFINE"

func TestMain(m *testing.M) {
	local.Child(os.Args) // the program under test starts itself as its helpers
	if os.Getenv(asConfine) != "" {
		os.Unsetenv(asConfine) // commands shall not inherit it
		main()
	}
	ramtest.Begin()
	os.Exit(m.Run())
}

// world is a place of its own for the program under test: a home folder, and a
// workspace beside it.
type world struct {
	home, work string
	env        []string
}

func newWorld(t *testing.T) world {
	t.Helper()
	// Not in /tmp, of which a confined command sees its own.
	base := "/var/tmp"
	if _, err := os.Stat(base); err != nil {
		base = ""
	}
	top, err := os.MkdirTemp(base, "confine-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(top); err != nil {
			t.Error(err)
		}
	})
	w := world{home: top + "/home", work: top + "/work"}
	for _, dir := range []string{w.home, w.work} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	w.env = []string{asConfine + "=1", "HOME=" + w.home, "PATH=/usr/local/bin:/usr/bin:/bin",
		"GORACE=atexit_sleep_ms=0"} // else each program ends a second later under the race detector
	return w
}

// configure writes the settings file.
func (w world) configure(t testing.TB, settings string) {
	t.Helper()
	dir := filepath.Join(w.home, ".config", "confine")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.toml"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
}

// confine returns the program under test, ready to be started in the workspace.
func (w world) confine(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Env = w.work, w.env
	return cmd
}

// requireSandbox skips a test where nothing can be enforced.
func requireSandbox(t *testing.T) {
	t.Helper()
	usable(t, &sandboxUse, "doctor")
}

// requireBubblewrap skips a test where bubblewrap is not usable.
func requireBubblewrap(t *testing.T) {
	t.Helper()
	usable(t, &bubblewrapUse, "run", "--provider", "bwrap", "true")
}

// use is whether confine did something here, which is tried once for all tests.
type use struct {
	once sync.Once
	ok   bool
	says string
}

var sandboxUse, bubblewrapUse use

// usable skips a test where confine does not do what it is told.
func usable(t *testing.T, u *use, args ...string) {
	t.Helper()
	u.once.Do(func() {
		out, err := newWorld(t).confine(t, args...).CombinedOutput()
		u.ok, u.says = err == nil, string(out)
	})
	require(t, u.ok, "confine "+strings.Join(args, " ")+" says:\n"+u.says)
}

// slow says that tests may take long.
func slow() bool { return os.Getenv("CONFINE_SLOW") != "" }

// require skips a test that cannot run here, and fails it where it must run.
func require(t *testing.T, condition bool, why string) {
	t.Helper()
	if condition {
		return
	}
	if os.Getenv("CI") != "" {
		t.Fatalf("this test must run on CI: %s", why)
	}
	t.Skip(why)
}
