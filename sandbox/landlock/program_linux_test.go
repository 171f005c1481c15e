package landlock

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/confine-dev/confine/sandbox/scripttest"
	"golang.org/x/sys/unix"
)

// The program is shown where it is hidden, but nothing else that a link which
// was turned meanwhile may lead to.
func TestOnlyAProgramIsShownAsOne(t *testing.T) {
	h := newHost(t)
	program, secret, services := filepath.Join(h.runtime, "program"), filepath.Join(h.runtime, "secret"), filepath.Join(h.runtime, "services")
	for path, mode := range map[string]os.FileMode{program: 0o755, secret: 0o600} {
		if err := os.WriteFile(path, nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(services, 0o755); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(h.plain.Path, "link")
	for target, want := range map[string]bool{program: true, secret: false, services: false} {
		os.Remove(link)
		if err := os.Symlink(target, link); err != nil {
			t.Fatal(err)
		}
		for _, mode := range modes {
			r := h.request(mode, true)
			r.Program = link
			l := wrap(t, r)
			taken := scripttest.Find(scripttest.Steps(t, &l.Prepare), unix.SYS_OPEN_TREE, func(s scripttest.Step) bool { return s.Args[1].Text() == target })
			if shown := len(taken) > 0; shown != want {
				t.Errorf("%s: a program that is a link to %s: shown %v, want %v", mode, target, shown, want)
			}
		}
	}
}
