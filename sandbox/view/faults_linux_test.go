package view

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/local"
)

// A fault plans no view in which something is left out.
func TestNoDescriptorsLeft(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ws := filepath.Join(top, "ws")
	config, secret := filepath.Join(ws, "config"), filepath.Join(top, "secret")
	if err := os.Mkdir(ws, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{config, secret} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	root, err := sandbox.DeclareRoot(ws, sandbox.Forbidden{})
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	plain := sandbox.Policy{Mode: sandbox.WorkspaceWrite, Roots: []*sandbox.Root{root}}
	protecting, hiding := plain, plain
	protecting.Protected = []string{config}
	hiding.Unreadable = []string{secret}
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	for name, policy := range map[string]sandbox.Policy{"sockets": plain, "protecting": protecting, "hiding": hiding} {
		request := local.Request{Policy: policy, Dir: ws, State: top + "/state", Tmp: top + "/tmp"}
		if _, err := Of(request); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		none := before
		none.Cur = 0
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none); err != nil {
			t.Fatal(err)
		}
		_, got := Of(request)
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
			t.Fatal(err)
		}
		if got == nil {
			t.Errorf("%s: a view was planned", name)
		}
	}
}
