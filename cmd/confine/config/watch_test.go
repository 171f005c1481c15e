package config

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// watched is a source that follows changes, and a connection of it.
type watched struct {
	*testPlace
	*Connection
	news chan struct{}
}

func (w *testPlace) watch(t *testing.T) *watched {
	t.Helper()
	s, err := openFor(Options{
		Paths: Paths{ConfigDir: w.user, ManagedFile: w.managed}, Getenv: func(string) string { return "" }, Watch: true,
	}, os.Geteuid())
	must(t, err)
	news := make(chan struct{}, 1)
	c := s.Connect(func() {
		select {
		case news <- struct{}{}:
		default:
		}
	})
	t.Cleanup(func() {
		c.Close()
		must(t, s.Close())
	})
	if warnings := c.Current().Warnings; len(warnings) > 0 {
		t.Fatal(warnings)
	}
	return &watched{w, c, news}
}

// patience is when a change counts as missed.
const patience = 20 * time.Second

// until waits until the settings are as they are to be in the end.
func (w *watched) until(t *testing.T, what string, final func(*Snapshot) bool) {
	t.Helper()
	for late := time.After(patience); !final(w.Current()); {
		select {
		case <-w.news:
		case <-late:
			t.Fatalf("%s: missed; in force are %+v, %q, %q", what, w.Current().Settings, w.Current().Errors, w.Current().Refusal)
		}
	}
}

func (w *watched) file() string { return filepath.Join(w.user, "config.toml") }

func processes(n uint64) func(*Snapshot) bool {
	return func(s *Snapshot) bool {
		return s.Settings.Limits.Processes == n && len(s.Errors) == 0 && s.Refusal == ""
	}
}

func limit(n int) string { return fmt.Sprintf("limits.processes = %d\n", n) }

// TestWatch is one way of changing a file after the other.
func TestWatch(t *testing.T) {
	requireUnix(t)
	t.Parallel()
	w := newPlace(t).watch(t)
	other := t.TempDir()
	write := func(path, text string) { must(t, os.WriteFile(path, []byte(text), 0o600)) }

	write(w.file(), limit(11))
	w.until(t, "made", processes(11))
	write(w.file(), limit(12))
	w.until(t, "written", processes(12))
	write(w.file()+".new", limit(13))
	must(t, os.Rename(w.file()+".new", w.file()))
	w.until(t, "replaced", processes(13))

	write(w.file(), "limits.processes = \n")
	w.until(t, "broken", func(s *Snapshot) bool { return len(s.Errors) == 1 && s.Settings.Limits.Processes == 13 })
	write(w.file(), limit(14))
	w.until(t, "mended", processes(14))
	must(t, os.Chmod(w.file(), 0o666))
	w.until(t, "opened to all", func(s *Snapshot) bool { return len(s.Errors) == 1 && s.Settings.Limits.Processes == 14 })
	must(t, os.Chmod(w.file(), 0o600))
	w.until(t, "closed again", processes(14))

	// A link, its target, and the folders of both.
	target := filepath.Join(other, "dotfiles", "confine.toml")
	must(t, os.Mkdir(filepath.Dir(target), 0o700))
	write(target, limit(15))
	must(t, os.Symlink(target, w.file()+".new"))
	must(t, os.Rename(w.file()+".new", w.file()))
	w.until(t, "a link", processes(15))
	write(target, limit(16))
	w.until(t, "the target is written", processes(16))
	write(target+".new", limit(17))
	must(t, os.Rename(target+".new", target))
	w.until(t, "the target is replaced", processes(17))
	must(t, os.Mkdir(filepath.Join(other, "newer"), 0o700))
	write(filepath.Join(other, "newer", "confine.toml"), limit(18))
	must(t, os.Rename(filepath.Dir(target), filepath.Join(other, "older")))
	must(t, os.Rename(filepath.Join(other, "newer"), filepath.Dir(target)))
	w.until(t, "the target's folder is replaced", processes(18))
	write(target, limit(19))
	w.until(t, "written in the new folder", processes(19))

	// A folder that goes, and comes back.
	must(t, os.Rename(w.user, w.user+".gone"))
	w.until(t, "gone", processes(Keys[0].defaultProcesses()))
	must(t, os.Mkdir(w.user, 0o700))
	write(w.file(), limit(20))
	w.until(t, "a folder that comes later", processes(20))

	// The other files.
	write(w.managed, limit(21))
	must(t, os.Chmod(w.managed, 0o644))
	w.until(t, "managed", processes(21))
	must(t, os.Remove(w.managed))
	w.until(t, "not managed any more", processes(20))
	must(t, os.RemoveAll(filepath.Join(w.folder, ".confine")))
	w.SetFolders([]string{w.folder})
	must(t, os.Mkdir(filepath.Join(w.folder, ".confine"), 0o700))
	write(filepath.Join(w.folder, ".confine", "config.toml"), limit(10))
	w.until(t, "a workspace tightens", processes(10))
	must(t, os.Remove(filepath.Join(w.folder, ".confine", "config.toml")))
	must(t, os.Symlink("x", filepath.Join(w.folder, ".confine", "config.toml")))
	w.until(t, "a workspace does harm", func(s *Snapshot) bool { return s.Refusal != "" })
	must(t, os.RemoveAll(filepath.Join(w.folder, ".confine")))
	w.until(t, "a workspace without settings", processes(20))
}

// defaultProcesses is what holds without any file.
func (Key) defaultProcesses() uint64 { return uint64(keyOf(KeyProcesses).Default.(int64)) }

// TestRandomEdits changes the files in every way that programs have, again and again,
// while somebody looks at the settings all the time. Each state of the file is marked in
// three keys: what is seen must be one state as a whole, none before the last that was
// seen in peace, and in the end the last.
func TestRandomEdits(t *testing.T) {
	requireUnix(t)
	t.Parallel()
	edits := 40
	if os.Getenv("CONFINE_SLOW") != "" {
		edits = 1000
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	e := &editing{T: t, rand: rand.New(rand.NewPCG(seed, 0)), spare: t.TempDir()}
	w := newPlace(t)
	e.file = filepath.Join(w.user, "config.toml")
	e.write(e.file, e.next())
	e.settled.Store(e.last.Load())
	e.watched = w.watch(t)
	stop := make(chan struct{})
	var looking sync.WaitGroup
	looking.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				e.look()
			}
		}
	})
	for done := 0; done < edits && !t.Failed(); {
		var what []string
		for range 1 + e.rand.IntN(4) {
			what = append(what, e.edit())
			done++
		}
		e.until(t, strings.Join(what, ", "), func(s *Snapshot) bool {
			if e.bad { // what held before does still, and may be any state but an earlier one
				return len(s.Errors) > 0
			}
			return state(s) == e.last.Load() && len(s.Errors) == 0
		})
		e.settled.Store(state(e.Current()))
	}
	close(stop)
	looking.Wait()
}

// editing is somebody who edits.
type editing struct {
	*testing.T
	*watched
	rand  *rand.Rand
	file  string
	spare string

	settled, last atomic.Int64 // states: the last that was seen in peace, the last that was written
	bad           bool         // the file cannot be understood now
	files         int
}

// next is the text of the next state. Every part of it allows more than nothing does.
func (e *editing) next() string {
	n := e.last.Add(1)
	return fmt.Sprintf("deny_read_defaults = false\nlimits.processes = %d\n# %s\nwritable_roots = [\"/opt/%d\"]\nlimits.open_files = %d\n",
		10000+n, strings.Repeat("x", e.rand.IntN(9000)), n, 10000+n)
}

// state is that of a snapshot, and -1 for a mixture.
func state(s *Snapshot) int64 {
	n := int64(s.Settings.Limits.Processes) - 10000
	whole := !s.Settings.DenyReadDefaults && s.Settings.Limits.OpenFiles == s.Settings.Limits.Processes &&
		len(s.Settings.WritableRoots) == 1 && s.Settings.WritableRoots[0] == fmt.Sprintf("/opt/%d", n)
	if !whole {
		return -1
	}
	return n
}

// look compares what is in force with what can be.
func (e *editing) look() {
	earliest := e.settled.Load()
	s := e.Current()
	if n := state(s); n < earliest || n > e.last.Load() {
		e.Errorf("in force is %d: %+v, after %d was", n, s.Settings, earliest)
	}
}

func (e *editing) write(path, text string) { must(e.T, os.WriteFile(path, []byte(text), 0o600)) }

// edit changes the file in some way and says in which.
func (e *editing) edit() string {
	text := e.next()
	if e.bad = e.rand.IntN(6) == 0; e.bad {
		e.last.Add(-1)
		text = []string{"limits.processes = \n", "sandbox_mode = \"danger\"\n", "\xff", "x = 1\n"}[e.rand.IntN(4)]
	}
	e.files++
	other := filepath.Join(e.spare, fmt.Sprint(e.files))
	switch how := e.rand.IntN(6); how {
	case 0, 1: // in place, in pieces
		file, err := os.OpenFile(e.file, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
		must(e.T, err)
		for len(text) > 0 {
			n := 1 + e.rand.IntN(len(text))
			_, err := file.WriteString(text[:n])
			must(e.T, err)
			text = text[n:]
		}
		must(e.T, file.Close())
		return "in place"
	case 2: // moved away, written anew
		e.write(other, text)
		must(e.T, os.Rename(e.file, e.file+"~"))
		e.write(e.file, text)
		must(e.T, os.Remove(e.file+"~"))
		return "moved away"
	case 3: // a link
		e.write(other, text)
		must(e.T, os.Symlink(other, e.file+".new"))
		must(e.T, os.Rename(e.file+".new", e.file))
		return "a link"
	case 4: // its folder is replaced
		folder := filepath.Dir(e.file)
		must(e.T, os.Mkdir(other, 0o700))
		e.write(filepath.Join(other, "config.toml"), text)
		must(e.T, os.Rename(folder, filepath.Join(e.spare, "old"+fmt.Sprint(e.files))))
		must(e.T, os.Rename(other, folder))
		return "another folder"
	}
	e.write(e.file+".new", text)
	must(e.T, os.Rename(e.file+".new", e.file))
	return "replaced"
}

// TestRemovalIsBelievedLater: a file that is away for a moment is being replaced.
func TestRemovalIsBelievedLater(t *testing.T) {
	s := &Source{watcher: &watcher{poke: make(chan struct{}, 1)}}
	said := layer{entries: []entry{{key: keyOf(KeyMode), value: "read-only"}}}
	f := file{layer: said}
	s.take(&f, layer{})
	if len(f.entries) != 1 {
		t.Fatal("believed at once")
	}
	s.take(&f, said)
	s.take(&f, layer{})
	if len(f.entries) != 1 || time.Since(f.gone) > removal {
		t.Fatal("an earlier absence counts")
	}
	<-s.watcher.poke // somebody looks again
	f.gone = time.Now().Add(-removal)
	if s.take(&f, layer{}); f.entries != nil || !f.gone.IsZero() {
		t.Fatal("never believed")
	}
}

// TestFileThatMovesIntoTheWorkspace: a command may write what the settings file becomes
// a link to. What it said before holds, until it is somewhere else again.
func TestFileThatMovesIntoTheWorkspace(t *testing.T) {
	requireUnix(t)
	w := newPlace(t).watch(t)
	limit := func(n int) string { return fmt.Sprintf("[limits]\nprocesses = %d\n", n) }
	processes := func(n uint64) func(*Snapshot) bool {
		return func(s *Snapshot) bool { return s.Settings.Limits.Processes == n }
	}
	must(t, os.WriteFile(w.file(), []byte(limit(30)), 0o600))
	w.until(t, "written", processes(30))
	w.SetFolders([]string{w.folder})
	theirs := filepath.Join(w.folder, "mine.toml")
	must(t, os.WriteFile(theirs, []byte(limit(31)), 0o600))
	for _, link := range []string{theirs, filepath.Join(w.folder, "way")} {
		if link != theirs {
			must(t, os.Symlink(theirs, link))
		}
		must(t, os.Symlink(link, w.file()+".new"))
		must(t, os.Rename(w.file()+".new", w.file()))
		w.until(t, "reached through the workspace", func(s *Snapshot) bool { return len(s.Errors) == 1 && strings.Contains(s.Errors[0], w.folder) })
		if !processes(30)(w.Current()) {
			t.Errorf("it says %+v", w.Current().Settings.Limits)
		}
		must(t, os.WriteFile(w.file()+".new", []byte(limit(30)), 0o600))
		must(t, os.Rename(w.file()+".new", w.file()))
		w.until(t, "back", func(s *Snapshot) bool { return len(s.Errors) == 0 })
	}
}
