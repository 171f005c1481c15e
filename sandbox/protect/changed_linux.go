package protect

import (
	"os"
	"syscall"
	"time"
)

// changeTime is a time that commands cannot set, in nanoseconds.
func changeTime(info os.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Ctim.Nano()
	}
	return 0
}

// mark tells whether a folder is still the same one, with the same names in it.
type mark struct {
	dev, ino          uint64
	modified, changed int64 // nanoseconds
}

// markOf is the mark of a folder; of nothing else there is one.
func markOf(path string) (m mark, ok bool) {
	var st syscall.Stat_t
	err := syscall.Lstat(path, &st)
	for err == syscall.EINTR {
		err = syscall.Lstat(path, &st)
	}
	if err != nil || st.Mode&syscall.S_IFMT != syscall.S_IFDIR {
		return mark{}, false
	}
	return mark{uint64(st.Dev), st.Ino, st.Mtim.Nano(), st.Ctim.Nano()}, true
}

// time is when the folder changed last.
func (m mark) time() time.Time { return time.Unix(0, max(m.modified, m.changed)) }

// ours reports whether commands, which run as this user, may change who may use a
// file.
func ours(info os.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return !ok || int(st.Uid) == os.Geteuid()
}

// names is how many names a file has.
func names(info os.FileInfo) int {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Nlink)
	}
	return 1
}
