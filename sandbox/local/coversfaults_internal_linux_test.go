package local

import (
	"os"
	"runtime"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// TestCoversThatCannotBeTold: what nobody can look at is not taken for absent.
func TestCoversThatCannotBeTold(t *testing.T) {
	obeyPermissions(t)
	s := newCoverStage(t)
	s.close(".git")
	release, _, failed := s.a.place(s.policy)
	defer release()
	if want := []string{s.at(".git/commondir")}; !slices.Equal(failed, want) {
		t.Errorf("not covered are %q, want %q", failed, want)
	}
}

// TestCoversWithoutDescriptors: a folder that cannot be opened is not one that is
// not there.
func TestCoversWithoutDescriptors(t *testing.T) {
	s := newCoverStage(t)
	var release func()
	var failed []string
	withoutDescriptors(t, func() { release, _, failed = s.a.place(s.policy) })
	release()
	for _, name := range allCovers {
		if !slices.Contains(failed, s.at(name)) {
			t.Errorf("%s is not among what could not be covered: %q", name, failed)
		}
	}
}

// TestCoversInAClosedFolder: they are removed when it is open again.
func TestCoversInAClosedFolder(t *testing.T) {
	obeyPermissions(t)
	s := newCoverStage(t)
	s.a.place(s.policy)
	s.close(".git")
	for _, c := range s.a.held {
		uncover(c.journal)
	}
	if err := os.Chmod(s.at(".git"), 0o700); err != nil {
		t.Fatal(err)
	}
	s.holds("after a try in vain", ".git/commondir")
	sweepCovers(s.state)
	s.holds("after another")
	s.noJournals()
}

func (s *coverStage) close(name string) {
	s.t.Helper()
	if err := os.Chmod(s.at(name), 0); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { os.Chmod(s.at(name), 0o700) })
}

// obeyPermissions lets permissions count for a test that root runs. The thread
// ends with the test.
func obeyPermissions(t *testing.T) {
	runtime.LockOSThread()
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if err := unix.Capget(&header, &sets[0]); err != nil {
		t.Fatal(err)
	}
	sets[0].Effective &^= 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_DAC_READ_SEARCH
	if err := unix.Capset(&header, &sets[0]); err != nil {
		t.Fatal(err)
	}
}

// TestCoversInAFolderOfMode555: a command could open it, so covers are made there, and
// nobody sees that it was open.
func TestCoversInAFolderOfMode555(t *testing.T) {
	obeyPermissions(t)
	s := newCoverStage(t)
	modes := map[string]os.FileMode{".": 0o555, ".git": 0o511}
	for name, mode := range modes {
		if err := os.Chmod(s.at(name), mode); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.Chmod(s.at(name), 0o700) })
	}
	same := func(when string) {
		t.Helper()
		for name, mode := range modes {
			if info, err := os.Stat(s.at(name)); err != nil || info.Mode().Perm() != mode {
				t.Errorf("%s: %s is %v (%v), want %v", when, name, info.Mode(), err, mode)
			}
		}
	}
	release, _, failed := s.a.place(s.policy)
	if len(failed) > 0 {
		t.Errorf("not covered: %q", failed)
	}
	same("covered")
	for _, name := range allCovers {
		if _, err := os.Lstat(s.at(name)); err != nil {
			t.Error(err)
		}
	}
	release()
	s.a.close()
	same("at the end")
	s.noJournals()
	for _, name := range allCovers {
		if _, err := os.Lstat(s.at(name)); err == nil {
			t.Errorf("%s is left", name)
		}
	}
}

// TestCoversInTheWay: what another run needs is not taken away, and who may make
// something there is told so, whichever server keeps it absent.
func TestCoversInTheWay(t *testing.T) {
	s := newCoverStage(t)
	release, _, _ := s.a.place(s.policy)
	for _, c := range []*covers{s.a, s.b} {
		if err := c.stands([]string{s.at(".git/commondir"), s.at(".envrc")}); err == nil {
			t.Error("nothing is said to be in the way of a file")
		}
		if err := c.stands([]string{s.at(".vscode"), s.at(".exrc"), s.at("nowhere/.envrc")}); err != nil {
			t.Error(err)
		}
	}
	release()
	s.a.close()
	if err := s.b.stands([]string{s.at(".envrc")}); err != nil {
		t.Errorf("nothing keeps it absent any more: %v", err)
	}
	if err := os.WriteFile(s.at(".envrc"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	release, _, _ = s.a.place(s.policy)
	if err := s.b.stands([]string{s.at(".envrc")}); err != nil {
		t.Errorf("it is the person's own: %v", err)
	}
	release()
	s.a.close()
}
