package ramtest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

func TestMain(m *testing.M) { Main(m) }

// TestBegin looks at what Begin made of this very program.
func TestBegin(t *testing.T) {
	if os.Geteuid() != 0 || os.Getenv("CONFINE_SLOW") != "" {
		return // there was nothing to do
	}
	for _, folder := range []string{os.TempDir(), "/var/tmp"} {
		if !inMemory(folder) && !inUse(folder) {
			t.Errorf("%s is on the disk", folder)
		}
	}
	program, err := os.Executable()
	if err == nil {
		_, err = os.Stat(program)
	}
	if err != nil {
		t.Errorf("this program is not where it was: %v", err)
	}
}

// TestOutside makes sure that whoever runs the tests goes on seeing its own files.
func TestOutside(t *testing.T) {
	parent := fmt.Sprintf("/proc/%d", os.Getppid())
	own, errOwn := os.Readlink("/proc/self/ns/mnt")
	other, errOther := os.Readlink(parent + "/ns/mnt")
	if errOwn != nil || errOther != nil || own == other {
		return // there was nothing to do
	}
	dir := t.TempDir()
	if _, err := os.Stat(parent + "/root" + dir); !os.IsNotExist(err) {
		t.Errorf("%s is there for the process that started this one: %v", dir, err)
	}
}

// TestInUse asks for the folder in which the source of this package lies, on whatever
// file system: it must never be covered while something needs what is in it.
func TestInUse(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"PWD": here, "HOME": here + "/", "PATH": "/usr/bin:" + here + "/bin", "GOCACHE": here + "/cache", "TMPDIR": here + "/tmp",
	} {
		t.Run(name, func(t *testing.T) {
			unused(t)
			t.Setenv(name, value)
			if !inUse(filepath.Dir(here)) {
				t.Errorf("%s is used by %s=%s", filepath.Dir(here), name, value)
			}
		})
	}
	unused(t)
	t.Setenv("TMPDIR", here)
	t.Setenv("HOME", here+"2")
	if inUse(here) {
		t.Errorf("%s is not used by what lies beside it", here)
	}
}

// unused lets the environment name nothing.
func unused(t *testing.T) {
	for _, name := range homes {
		t.Setenv(name, "")
	}
}
