package local

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/confine-dev/confine/sandbox"
)

// coverStage is a workspace and the covers of two servers of one person.
type coverStage struct {
	t      *testing.T
	state  string
	ws     string
	policy sandbox.Policy
	a, b   *covers
}

func newCoverStage(t *testing.T) *coverStage {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &coverStage{t: t, state: filepath.Join(base, "state"), ws: filepath.Join(base, "ws")}
	for _, dir := range []string{s.state, s.ws, s.at(".git")} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	root, err := sandbox.DeclareRoot(s.ws, sandbox.Forbidden{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	s.policy = sandbox.Policy{Mode: sandbox.WorkspaceWrite, Roots: []*sandbox.Root{root},
		Protected: []string{s.at(".vscode"), s.at(".envrc"), s.at(".git/commondir"), s.at("nowhere/.envrc")}}
	s.a, s.b = newCovers(s.state), newCovers(s.state)
	return s
}

func (s *coverStage) at(name string) string { return filepath.Join(s.ws, name) }

// holds fails unless exactly these are in the workspace and its git folder.
func (s *coverStage) holds(when string, want ...string) {
	s.t.Helper()
	var got []string
	filepath.WalkDir(s.ws, func(path string, d os.DirEntry, err error) error {
		if name, _ := filepath.Rel(s.ws, path); name != "." && name != ".git" {
			got = append(got, name)
		}
		return err
	})
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		s.t.Errorf("%s: the workspace holds %q, want %q", when, got, want)
	}
}

var allCovers = []string{".vscode", ".envrc", ".git/commondir"}

// noJournals fails if a journal is left.
func (s *coverStage) noJournals() {
	s.t.Helper()
	if list, _ := os.ReadDir(filepath.Join(s.state, coversFolder)); len(list) > 0 {
		s.t.Errorf("%d journals are left", len(list))
	}
}

func TestCoversEndWithTheirLastRun(t *testing.T) {
	s := newCoverStage(t)
	first, absent, failed := s.a.place(s.policy)
	if len(failed) > 0 || len(absent) != 3 {
		t.Fatalf("covered are %q, not %q", absent, failed)
	}
	s.holds("in a run", allCovers...)
	second, _, _ := s.a.place(s.policy)
	other, absent, _ := s.b.place(s.policy)
	if len(absent) != 3 {
		t.Errorf("another server takes the covers for the person's: %q", absent)
	}
	first()
	first()
	second()
	s.holds("while another server needs them", allCovers...)
	s.a.close()
	s.holds("while another server needs them", allCovers...)
	s.b.close()
	s.holds("while a run needs them", allCovers...)
	other()
	s.holds("when the next run may follow", allCovers...)
	again, absent, _ := s.b.place(s.policy)
	if len(absent) != 3 {
		t.Errorf("covers that stayed are taken for the person's: %q", absent)
	}
	again()
	s.b.close()
	s.holds("at the end")
	s.noJournals()
}

// TestCoversLingerNotForLong: nobody has to come back for them.
func TestCoversLingerNotForLong(t *testing.T) {
	s := newCoverStage(t)
	release, _, _ := s.a.place(s.policy)
	release()
	for end := time.Now().Add(20 * lingering); time.Now().Before(end); time.Sleep(lingering / 50) {
		if _, err := os.Lstat(s.at(".envrc")); err != nil {
			break
		}
	}
	s.a.close() // waits for who is removing them
	s.holds("after a while")
	s.noJournals()
}

func TestCoversOfTheDead(t *testing.T) {
	s := newCoverStage(t)
	s.a.place(s.policy)
	living, _, _ := s.b.place(s.policy)
	sweepCovers(s.state)
	s.holds("while somebody lives", allCovers...)
	for _, c := range s.a.held { // as the kernel does for who was killed
		c.journal.Close()
	}
	living()
	s.b.close()
	s.holds("when the last lives no more")
	s.a = newCovers(s.state)
	s.a.place(s.policy)
	for _, c := range s.a.held {
		c.journal.Close()
	}
	sweepCovers(s.state)
	s.holds("after the sweep")
	s.noJournals()
}

func TestCoversAreNotThePersons(t *testing.T) {
	s := newCoverStage(t)
	if err := os.Mkdir(s.at(".vscode"), 0o755); err != nil {
		t.Fatal(err)
	}
	release, _, _ := s.a.place(s.policy)
	for path, text := range map[string]string{".envrc/file": "mine", ".git/commondir": "../x\n"} {
		if err := os.WriteFile(s.at(path), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	release()
	s.a.close()
	s.holds("with what was there and what was added", ".vscode", ".envrc", ".envrc/file", ".git/commondir")

	s = newCoverStage(t)
	release, _, _ = s.a.place(s.policy)
	for _, name := range []string{".vscode", ".envrc"} { // other folders by now
		if err := os.Rename(s.at(name), s.at(name+".old")); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(s.at(name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	release()
	s.a.close()
	s.holds("with folders of the same names", ".vscode", ".envrc", ".vscode.old", ".envrc.old")
}

// TestCoversThatWereOnlyMeant: whoever was killed between saying and making, or
// between making and saying.
func TestCoversThatWereOnlyMeant(t *testing.T) {
	s := newCoverStage(t)
	if err := os.Mkdir(s.at(".envrc"), 0o755); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	s.a.place(s.policy)
	for _, c := range s.a.held {
		var meant []byte
		for _, r := range readJournal(c.journal) {
			r.Ino, r.Time = 0, now.UnixNano()
			line, _ := json.Marshal(r)
			meant = append(append(meant, line...), '\n')
		}
		old, _ := json.Marshal(coverRecord{Folder: []byte(s.ws), Name: ".envrc", Time: now.Add(-time.Hour).UnixNano()})
		meant = append(append(meant, old...), '\n')
		if err := os.WriteFile(c.journal.Name(), meant, 0o600); err != nil {
			t.Fatal(err)
		}
		c.journal.Close()
	}
	sweepCovers(s.state)
	s.holds("after the sweep", ".envrc")
}

func TestNoCoversWhereNothingIsWritten(t *testing.T) {
	s := newCoverStage(t)
	s.policy.Mode = sandbox.ReadOnly
	_, absent, failed := s.a.place(s.policy)
	if s.holds("in a read-only run"); len(absent)+len(failed) > 0 {
		t.Errorf("covered are %q, not %q", absent, failed)
	}
	s.noJournals()
	s.policy.Mode = sandbox.WorkspaceWrite
	s.policy.Protected = []string{s.at("link/x")}
	if err := os.Symlink(s.state, s.at("link")); err != nil {
		t.Fatal(err)
	}
	s.a.place(s.policy)
	if _, err := os.Lstat(filepath.Join(s.state, "x")); err == nil {
		t.Error("a link was followed")
	}
}
