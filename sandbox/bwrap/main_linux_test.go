package bwrap

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/confine-dev/confine/sandbox/local"
	"github.com/confine-dev/confine/sandbox/ramtest"
	"github.com/confine-dev/confine/sandbox/sandboxtest"
)

func TestMain(m *testing.M) {
	if os.Args[0] == "bwrap" {
		os.Exit(pretend())
	}
	local.Child(os.Args)
	sandboxtest.Child(os.Args)
	ramtest.Begin()
	os.Exit(m.Run())
}

// pretend is a copy of this program that speaks as bubblewrap would: what the
// file beside it says, or, if that begins with "bwrap: ", that on standard error
// for everything but its version.
func pretend() int {
	program, err := os.Readlink("/proc/self/exe")
	says, _ := os.ReadFile(strings.TrimSuffix(program, " (deleted)") + ".says")
	fails := strings.HasPrefix(string(says), "bwrap: ")
	switch {
	case err != nil || os.Getenv("SECRET") != "" || len(says) == 0:
		return 3
	case fails && len(os.Args) == 2:
		fmt.Println("bubblewrap 0.8.0")
	case fails:
		fmt.Fprintln(os.Stderr, string(says))
		return 1
	default:
		fmt.Println(string(says))
	}
	return 0
}

// speaker makes a program at a path that says what bubblewrap would; see pretend.
func speaker(t *testing.T, path, says string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	copyTo(t, "/proc/self/exe", path)
	if err := os.WriteFile(path+".says", []byte(says), 0o644); err != nil {
		t.Fatal(err)
	}
}

func copyTo(t *testing.T, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
}
