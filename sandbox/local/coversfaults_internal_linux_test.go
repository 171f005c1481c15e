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
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	none := before
	none.Cur = 0
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &none); err != nil {
		t.Fatal(err)
	}
	release, _, failed := s.a.place(s.policy)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
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
