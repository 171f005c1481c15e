package local

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/protect"
	"golang.org/x/sys/unix"
)

// opened does something in a folder. If permissions alone refuse it, and the folder
// is ours, it does it once more with the folder open for as long as that takes: a
// command could open it as well, and make there what is to stay absent. Whoever is
// killed in between leaves the folder open to its owner.
func opened(dir int, do func() error) error {
	err := do()
	var st unix.Stat_t
	if err != unix.EACCES || unix.Fstat(dir, &st) != nil || int(st.Uid) != os.Geteuid() {
		return err
	}
	mode := st.Mode & 0o7777
	if mode&unix.S_ISGID != 0 {
		return unix.EBUSY // who is in another group could not give the bit back
	}
	self := fmt.Sprintf("/proc/self/fd/%d", dir) // the descriptor is of O_PATH
	if err := unix.Fchmodat(unix.AT_FDCWD, self, mode|0o300, 0); err != nil {
		return err
	}
	err = do()
	if restore := unix.Fchmodat(unix.AT_FDCWD, self, mode, 0); err == nil {
		err = restore
	}
	return err
}

// stands is an error if something that was granted to be made cannot be made now,
// because what keeps it absent is needed by another run. An empty folder is in the
// way of a file only: of what usually is a folder it is the beginning.
func (c *covers) stands(lifted []string) error {
	for _, path := range lifted {
		if protect.IsFolder(path) {
			continue
		}
		dir, st, err := openFolder(filepath.Dir(path))
		if err != nil {
			continue
		}
		var there unix.Stat_t
		err = unix.Fstatat(dir, filepath.Base(path), &there, unix.AT_SYMLINK_NOFOLLOW)
		unix.Close(dir)
		if err == nil && c.made(fmt.Sprintf("%x-%x", st.Dev, st.Ino), filepath.Base(path), there.Ino) {
			return &sandbox.UnavailableError{Mode: sandbox.WorkspaceWrite,
				Detail:   fmt.Sprintf("%q cannot be made now: another command is running for which it has to stay absent", path),
				Remedies: []string{"wait until that command has ended, or end it; then ask again"}}
		}
	}
	return nil
}

// made reports whether a file of a folder is what was made to keep its name absent,
// by any server of this person.
func (c *covers) made(key, name string, ino uint64) bool {
	journal, err := os.OpenFile(filepath.Join(c.dir, key), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer journal.Close()
	for _, r := range readJournal(journal) {
		if r.Name == name && r.Ino == ino {
			return true
		}
	}
	return false
}
