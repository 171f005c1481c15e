package hide

import (
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/confine-dev/confine/sandbox"
)

// stamp tells whether a file or folder has changed. What does not exist has the
// zero stamp.
type stamp struct {
	info fs.FileInfo
	time time.Time
	size int64
}

func stampOf(path string) stamp {
	info, err := os.Stat(path)
	if err != nil {
		return stamp{}
	}
	return stamp{info, info.ModTime(), info.Size()}
}

func (s stamp) same(o stamp) bool {
	if s.info == nil || o.info == nil {
		return s.info == nil && o.info == nil
	}
	return s.time.Equal(o.time) && s.size == o.size && os.SameFile(s.info, o.info)
}

// watch notes what a path is before anybody looks at it; if it does not exist,
// what it would be made in as well.
func (f *finder) watch(path string) {
	for {
		if _, known := f.watched[path]; known {
			return
		}
		s := stampOf(path)
		f.watched[path] = s
		if s.info != nil || path == filepath.Dir(path) {
			return
		}
		path = filepath.Dir(path)
	}
}

// unchanged reports whether everything is as it was.
func unchanged(watched map[string]stamp) bool {
	for path, before := range watched {
		if before.info != nil && !before.same(stampOf(path)) {
			return false // what did not exist would have changed its folder
		}
	}
	return true
}

// settled reports whether a change after the look would show.
func settled(watched map[string]stamp, looked time.Time) bool {
	for _, s := range watched {
		if s.info != nil && !sandbox.Settled(s.time, looked) {
			return false
		}
	}
	return true
}
