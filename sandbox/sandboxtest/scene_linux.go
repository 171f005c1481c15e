package sandboxtest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/confine-dev/confine/sandbox"
	"golang.org/x/sys/unix"
)

// scene is the host's side of one try of one row.
type scene struct {
	t       *testing.T
	place   *place
	mode    sandbox.Mode
	stage   stage
	network bool     // it is granted
	grant   grant    // what else is; nil: nothing
	before  []string // what Outside looked like
	victim  *victim
	aside   any // what a row's arrange keeps for its seen
}

// newScene makes folders for one try. In workspace-write mode what is outside
// lies beside the root; in read-only mode it is the root, for nothing there may
// change either.
func newScene(t *testing.T, p *place, mode sandbox.Mode) *scene {
	t.Helper()
	token := fmt.Sprintf("r%d", p.count.Add(1)) // short: sockets are made below
	s := &scene{t: t, place: p, mode: mode, stage: p.services.stage()}
	s.stage.Token, s.stage.Root, s.stage.State = token, p.root.Path, p.state
	s.stage.Name = fmt.Sprintf("confine-suite-%d-%s", os.Getpid(), token)
	s.stage.Control = mode == sandbox.DangerFullAccess
	s.stage.Inside = filepath.Join(p.root.Path, token)
	s.stage.Outside = filepath.Join(p.outside, token)
	if mode == sandbox.ReadOnly {
		s.stage.Outside, s.stage.Inside = s.stage.Inside, ""
	}
	if s.stage.Inside != "" {
		if err := os.Mkdir(s.stage.Inside, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	furnish(t, s.stage.Outside)
	s.before = look(s.stage.Outside)
	return s
}

// furnish fills the folder that must not change: a file, a second one, an
// empty folder, a folder with a file, a link and an attribute.
func furnish(t *testing.T, dir string) {
	t.Helper()
	err := errors.Join(os.Mkdir(dir, 0o755), os.Mkdir(filepath.Join(dir, "empty"), 0o755), os.Mkdir(filepath.Join(dir, "folder"), 0o755),
		os.WriteFile(filepath.Join(dir, "file"), []byte("host"), 0o644), os.WriteFile(filepath.Join(dir, "other"), []byte("host"), 0o644),
		os.WriteFile(filepath.Join(dir, "folder", "file"), []byte("host"), 0o644), os.Symlink("file", filepath.Join(dir, "link")))
	if err != nil {
		t.Fatal(err)
	}
	// Where there are no user attributes, the row for them says so.
	unix.Setxattr(filepath.Join(dir, "file"), "user.suite", []byte("host"), 0)
}

// look describes everything below a folder; what differs has changed. The time
// of the last status change tells of what has no line of its own.
func look(dir string) []string {
	var lines []string
	filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		var st unix.Stat_t
		if err == nil {
			err = unix.Lstat(path, &st)
		}
		if err != nil {
			lines = append(lines, fmt.Sprintf("%s: %v", path, err))
			return nil
		}
		content := ""
		if d.Type().IsRegular() {
			data, _ := os.ReadFile(path) // unreadable is a difference too
			content = string(data)
		}
		lines = append(lines, fmt.Sprintf("%s: inode %d mode %o links %d owner %d:%d size %d changed %d.%09d content %q",
			path, st.Ino, st.Mode, st.Nlink, st.Uid, st.Gid, st.Size, st.Ctim.Sec, st.Ctim.Nsec, content))
		return nil
	})
	return lines
}

// whatHappened says what changed on the host; nothing is the empty string.
func (s *scene) whatHappened(r refusal) string {
	var seen []string
	after := look(s.stage.Outside)
	for _, line := range after {
		if !slices.Contains(s.before, line) {
			seen = append(seen, "now "+line)
		}
	}
	for _, line := range s.before {
		if !slices.Contains(after, line) {
			seen = append(seen, "was "+line)
		}
	}
	if r.seen != nil {
		if what := r.seen(s); what != "" {
			seen = append(seen, what)
		}
	}
	return strings.Join(seen, "; ")
}
