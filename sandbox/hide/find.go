package hide

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/confine-dev/confine/sandbox"
)

// Rules say what is to be hidden. The zero value hides nothing.
type Rules struct {
	Home     string              // the person's home folder, absolute; empty if there is none
	Getenv   func(string) string // of the person's environment; nil: it is empty
	Defaults bool                // hide Stores
	Root     bool                // we are root: what only root can read counts, root's home folder too
	More     []string            // hidden besides, and also inside the workspace; absolute
}

// Limits of one Find.
const (
	maxEntries = 64        // of one of Store.Folders; one that has more is hidden as a whole
	maxMixed   = 256 << 10 // bytes of a Mixed file; a larger one is hidden
)

// Finder finds what rules hide, again and again. It is safe for concurrent use.
type Finder struct {
	rules Rules

	mu      sync.Mutex // guards what follows
	looked  bool
	stores  []string          // what was found by default
	watched map[string]stamp  // whatever that depends on; see unchanged
	led     map[string]string // see leads
}

// New returns a finder, which takes the place of another one, if that is not nil. It
// looks at nothing yet.
func New(r Rules, before *Finder) *Finder {
	f := &Finder{rules: r, led: map[string]string{}}
	if before != nil {
		before.mu.Lock()
		defer before.mu.Unlock()
		maps.Copy(f.led, before.led)
	}
	return f
}

// leads is where a path led through links when it first did. Commands can replace a
// link in a folder of theirs; what it led to stays hidden all the same.
func (f *Finder) leads(path string, found []string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	target, known := f.led[path]
	if !known {
		real, err := filepath.EvalSymlinks(path)
		if err != nil || !slices.Contains(found, real) {
			return nil
		}
		f.led[path], target = real, real
	}
	if _, err := os.Lstat(target); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return []string{target}
}

// Find lists what is to be hidden and exists, as canonical paths, sorted. What is
// found by default is left out where it is, or lies in, one of the workspace's
// roots: somebody works on it.
func (f *Finder) Find(roots []*sandbox.Root) []string {
	paths := slices.DeleteFunc(slices.Clone(f.defaults()), func(path string) bool {
		return slices.ContainsFunc(roots, func(root *sandbox.Root) bool { return sandbox.Within(path, root.Path) })
	})
	more := newFinder()
	for _, path := range f.rules.More {
		more.add(path)
		paths = append(paths, f.leads(path, more.found)...)
	}
	paths = append(paths, more.found...)
	slices.Sort(paths)
	return slices.Compact(paths)
}

// defaults looks for the stores, unless nothing can have changed since.
func (f *Finder) defaults() []string {
	if !f.rules.Defaults {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.looked && unchanged(f.watched) {
		return f.stores
	}
	began := time.Now()
	look := newFinder()
	f.rules.defaults(look)
	f.stores, f.watched = look.found, look.watched
	f.looked = !look.unsure && settled(f.watched, began)
	return f.stores
}

func (r Rules) defaults(f *finder) {
	homes := []string{r.Home}
	if r.Root && r.Home != rootHome {
		homes = append(homes, rootHome)
	}
	for _, home := range homes {
		if !filepath.IsAbs(home) {
			continue
		}
		if real, err := filepath.EvalSymlinks(home); err == nil {
			f.never = append(f.never, real)
			f.home(real)
		}
	}
	if r.Root {
		for _, s := range Stores {
			for _, path := range s.System {
				f.matching(path)
			}
		}
	}
	if r.Getenv != nil {
		r.variables(f)
	}
}

const rootHome = "/root"

// variables finds what the environment names. A path may be a list of them.
func (r Rules) variables(f *finder) {
	for _, s := range Stores {
		for _, v := range s.Variables {
			for _, place := range filepath.SplitList(r.Getenv(v[0])) {
				place = filepath.Join(place, v[1])
				f.watch(filepath.Dir(place))
				info, err := os.Stat(place)
				if err == nil && filepath.IsAbs(place) && (info.Mode().IsRegular() || sandbox.Within(place, r.Home)) {
					f.add(place)
				}
			}
		}
	}
	config := r.Getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(config) || filepath.Clean(config) == filepath.Join(r.Home, ".config") {
		return
	}
	for _, s := range Stores {
		for _, name := range s.Home {
			if rest, ok := strings.CutPrefix(name, ".config/"); ok {
				f.add(filepath.Join(config, rest))
			}
		}
	}
}

// finder collects what exists.
type finder struct {
	found   []string
	watched map[string]stamp
	names   map[string]map[string]bool // what is in some folders; looked at once
	never   []string                   // a place that holds one of them is no store
	links   int                        // followed by behind
	unsure  bool                       // some folder could not be listed, perhaps just now
}

func newFinder() *finder {
	return &finder{names: map[string]map[string]bool{}, never: []string{"/proc", "/dev", "/sys"}, watched: map[string]stamp{}}
}

// home finds the places below a home folder, which is canonical.
func (f *finder) home(home string) {
	for _, s := range Stores {
		for _, name := range s.Home {
			if f.may(home, name) {
				f.add(filepath.Join(home, name))
			}
		}
		for _, name := range s.Mixed {
			if !f.may(home, name) {
				continue
			}
			file := filepath.Join(home, name)
			f.watch(file)
			if holdsCredential(file) {
				f.add(file)
			}
		}
		for _, name := range s.Folders {
			if f.may(home, name) {
				f.folder(filepath.Join(home, name), s.Ordinary)
			}
		}
	}
}

// crowded are the folders in which so many places would be looked for that it is
// cheaper to read their names at once.
var crowded = []string{"", ".config", ".local/share"}

// may reports whether a place below a home folder can exist at all, going by the
// names in crowded folders.
func (f *finder) may(home, name string) bool {
	for _, folder := range slices.Backward(crowded) {
		rest, ok := name, true
		if folder != "" {
			rest, ok = strings.CutPrefix(name, folder+"/")
		}
		if ok {
			first, _, _ := strings.Cut(rest, "/")
			names := f.list(filepath.Join(home, folder))
			return names == nil || names[first]
		}
	}
	return true
}

// list has the names in a folder. It is nil if they cannot be told: permissions
// can be in the way, or no descriptor may be left.
func (f *finder) list(folder string) map[string]bool {
	names, known := f.names[folder]
	if !known {
		f.watch(folder)
		if list, err := entries(folder, -1); err == nil {
			names = map[string]bool{}
			for _, name := range list {
				names[name] = true
			}
		} else {
			f.unsure = true
		}
		f.names[folder] = names
	}
	return names
}

// entries are names in a folder, n at most unless it is negative. What is absent
// or no folder has none.
func entries(folder string, n int) ([]string, error) {
	dir, err := os.Open(folder)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(n)
	if err == io.EOF || errors.Is(err, syscall.ENOTDIR) {
		err = nil
	}
	return names, err
}

// folder hides what is in a folder and not ordinary.
func (f *finder) folder(folder string, ordinary []string) {
	info, err := os.Stat(folder)
	if err != nil || !info.IsDir() {
		f.add(folder)
		return
	}
	f.watch(folder)
	names, err := entries(folder, maxEntries+1)
	if err != nil {
		f.unsure = true
	}
	if err != nil || len(names) > maxEntries {
		f.add(folder)
		return
	}
	for _, name := range names {
		known := slices.ContainsFunc(ordinary, func(pattern string) bool { ok, _ := path.Match(pattern, name); return ok })
		if !known {
			f.add(filepath.Join(folder, name))
		}
	}
}

// matching adds what a path with * in its last part stands for.
func (f *finder) matching(pattern string) {
	folder, name := filepath.Split(pattern)
	if !strings.Contains(name, "*") {
		f.add(pattern)
		return
	}
	for candidate := range f.list(filepath.Clean(folder)) {
		if ok, _ := path.Match(name, candidate); ok && !strings.HasSuffix(candidate, ".pub") {
			f.add(folder + candidate)
		}
	}
}

// add adds what a path leads to, if that is a file or a folder. Sockets are not
// files, and devices not secrets. Of a path that permissions hide, the folder is
// added that hides it: in a workspace a command can open it again.
func (f *finder) add(path string) {
	f.watch(filepath.Dir(path))
	_, err := os.Lstat(path)
	if errors.Is(err, fs.ErrPermission) && filepath.Dir(path) != path {
		f.add(filepath.Dir(path))
	}
	if err != nil {
		return // most are absent, and to say so costs one call
	}
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrPermission) { // a link into such a folder
		f.behind(path)
	}
	if err != nil {
		return
	}
	holds := slices.ContainsFunc(f.never, func(folder string) bool { return sandbox.Within(folder, real) })
	if info, err := os.Lstat(real); err == nil && !holds && (info.IsDir() || info.Mode().IsRegular()) {
		f.found = append(f.found, real)
	}
}

// maxLinks bounds how many links are followed one after another.
const maxLinks = 40

// behind adds what a link leads to that cannot be resolved for want of permission.
func (f *finder) behind(path string) {
	if f.links++; f.links > maxLinks {
		return
	}
	if target, err := os.Readlink(path); err == nil {
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path), target)
		}
		f.add(target)
	}
}

// inAddress matches a password in the address of a server.
var inAddress = regexp.MustCompile(`://[^/\s:@]+:[^/\s@]+@`)

// holdsCredential reports whether a file of configuration seems to hold a
// credential. What cannot be told counts as one; what cannot be read, commands
// cannot read either.
func holdsCredential(name string) bool {
	info, err := os.Stat(name)
	if err != nil {
		return false
	}
	if !info.Mode().IsRegular() || info.Size() > maxMixed {
		return true
	}
	file, err := os.Open(name)
	if err != nil {
		return true
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxMixed+1))
	if err != nil || len(text) > maxMixed {
		return true
	}
	lower := bytes.ToLower(text)
	return slices.ContainsFunc(credentialMarks, func(mark string) bool { return bytes.Contains(lower, []byte(mark)) }) || inAddress.Match(text)
}
