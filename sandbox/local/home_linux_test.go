package local_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/local"
)

func TestStateFolderIsPrivate(t *testing.T) {
	t.Parallel()
	f := newFixture(t, noNamespaces)
	f.succeed(t, "true")
	err := filepath.Walk(filepath.Join(f.state, "servers"), func(path string, info os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v: others can use it", path, info.Mode())
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestStateFolderMustBeAbsolute(t *testing.T) {
	if e, err := local.New(nil, local.Options{StateDir: "relative"}); err == nil {
		e.Close()
		t.Error("a relative state folder was accepted")
	}
}

// What a server left whose guardian is dead too is removed by the next one;
// the folders of living servers are not touched.
func TestSweep(t *testing.T) {
	eachLevel(t, func(t *testing.T, living *fixture) {
		p := living.start(t, living.spec(sleeper))
		printed(t, p, "ready")
		before := serverFolders(t, living.state)
		for name, make := range map[string]func(dir string) error{
			"unlocked": func(dir string) error { return os.WriteFile(filepath.Join(dir, "lock"), nil, 0o600) },
			"lockless": func(dir string) error { return nil },
			"closed": func(dir string) error {
				if err := os.WriteFile(filepath.Join(dir, "lock"), nil, 0o600); err != nil {
					return err
				}
				return os.Chmod(filepath.Join(dir, "s", "1"), 0)
			},
		} {
			dir := filepath.Join(living.state, "servers", name)
			if err := os.MkdirAll(filepath.Join(dir, "s", "1", "tmp"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := make(dir); err != nil {
				t.Fatal(err)
			}
		}
		second, provider, policy := open(t, living.level, living.state, living.dir)
		spec := living.spec("echo second")
		spec.Policy = policy
		q, err := provider.Start(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		if o := finish(t, q); o.stdout != "second\n" {
			t.Errorf("the second engine's command printed %q", o.stdout)
		}
		if err := second.Close(); err != nil {
			t.Error(err)
		}
		if after := serverFolders(t, living.state); strings.Join(after, " ") != strings.Join(before, " ") {
			t.Errorf("there are the folders %v, want the living engine's %v", after, before)
		}
		select {
		case <-p.Done():
			t.Error("the living engine's command was ended")
		default:
		}
		living.succeed(t, "true")
	})
}

// Engines that start at the same moment do not take each other for dead.
func TestManyEnginesAtOnce(t *testing.T) {
	t.Parallel()
	state := realDir(t)
	var engines sync.WaitGroup
	for range 8 {
		engines.Go(func() {
			for range 10 {
				e, err := local.New(nil, local.Options{StateDir: state})
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := os.Stat(e.SpillDir()); err != nil {
					t.Error(err)
				}
				if err := e.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	engines.Wait()
	if left := serverFolders(t, state); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// A guardian that is killed is replaced, and the engine goes on.
func TestGuardianKilled(t *testing.T) {
	eachLevel(t, func(t *testing.T, f *fixture) {
		f.succeed(t, "true")
		p := f.start(t, f.spec(sleeper))
		printed(t, p, "ready")
		first := guardians(t, f.state)
		if len(first) != 1 {
			t.Fatalf("there are %d guardians", len(first))
		}
		syscall.Kill(first[0], syscall.SIGKILL)
		eventually(t, "another guardian", func() bool {
			now := guardians(t, f.state)
			return len(now) == 1 && now[0] != first[0]
		})
		f.succeed(t, "true")
		select {
		case <-p.Done():
			t.Error("the command ended with the guardian")
		default:
		}
		// Signals that a person can send by mistake do not end one.
		second := guardians(t, f.state)[0]
		eventually(t, "the guardian to ignore signals", func() bool { return ignores(second, syscall.SIGTERM) })
		for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT} {
			syscall.Kill(second, sig)
		}
		f.succeed(t, "true")
		if now := guardians(t, f.state); len(now) != 1 || now[0] != second {
			t.Errorf("the guardian ended of a signal")
		}
	})
}

// A guardian that dies just before the engine is closed leaves nothing.
func TestGuardianKilledBeforeClose(t *testing.T) {
	t.Parallel()
	f := newFixture(t, noNamespaces)
	finish(t, f.start(t, f.spec("true")))
	for _, pid := range guardians(t, f.state) {
		syscall.Kill(pid, syscall.SIGKILL)
	}
	if err := f.engine.Close(); err != nil {
		t.Error(err)
	}
	if left := serverFolders(t, f.state); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// Two engines in one state folder know nothing of each other.
func TestTwoEngines(t *testing.T) {
	eachLevel(t, func(t *testing.T, f *fixture) {
		second, provider, policy := open(t, f.level, f.state, f.dir)
		spec := in("same", f.spec(`echo x >"$TMPDIR/of-the-first"; `+sleeper))
		if f.level == unconfined {
			spec.Command = sleeper
		}
		p := f.start(t, spec)
		printed(t, p, "ready")
		spec = in("same", f.spec(`ls "$TMPDIR"/of-the-first 2>/dev/null; echo end`))
		spec.Policy = policy
		spec.Env = append(spec.Env, "TMPDIR="+f.dir)
		q, err := provider.Start(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		if o := finish(t, q); o.stdout != "end\n" {
			t.Errorf("the second engine's session of the same name finds %q", o.stdout)
		}
		if err := second.Close(); err != nil {
			t.Error(err)
		}
		select {
		case <-p.Done():
			t.Error("closing one engine ended the other's command")
		default:
		}
		if err := p.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		finish(t, p).ended(t, 0, "SIGTERM")
	})
}

var _ sandbox.Provider = (*local.Engine)(nil)
