package protect

import (
	"os"
	"time"

	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/mounts"
)

// own are the other names of confine's own files, as they were found some time ago.
type own struct {
	at    time.Time
	paths []string
}

// ownNames are the names that mounts give to confine's own files, and to what would
// be one. No root holds these by their first name; a folder that is mounted in a root
// may show them.
func (f *Finder) ownNames(forbidden sandbox.Forbidden) []string {
	now := f.clock()()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.own != nil && now.Sub(f.own.at) < walkHolds {
		return f.own.paths
	}
	f.own = &own{at: now}
	table := mounted()
	for _, path := range forbidden.Own {
		if path != "" {
			f.own.paths = append(f.own.paths, table.Aliases(sandbox.Canonical(path))...)
		}
	}
	return f.own.paths
}

// mounted is what is mounted here; on other systems than Linux that is not known.
func mounted() mounts.Table {
	text, err := os.ReadFile(mounts.File)
	if err != nil {
		return nil
	}
	return mounts.Parse(string(text))
}

// keepOwn protects them as far as commands can write there.
func (s *search) keepOwn(names []string) {
	for _, path := range names {
		if s.writable(path) {
			s.keep(firstAbsent(path))
		}
	}
}
