package local

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/protect"
	"golang.org/x/sys/unix"
)

// covers stand on the host where protected paths do not exist, so that something
// can be mounted there. They exist while a run needs them, and for a moment
// longer, since the next run often follows at once and making them takes longer
// than all else on a slow disk. They are removed by whoever needs them last: this
// server, another one of the same person, or, when these are dead, a guardian or
// the next server.
//
// For each folder that has covers there is a journal in the state folder. Who
// needs them holds a shared lock on it; who gets the exclusive one removes what
// the journal names, and nothing else: an empty folder, or a file with nothing but
// what it was made with, of the very inode that was made.
type covers struct {
	dir string // of the journals

	mu   sync.Mutex
	held map[string]*covered // guarded by mu; by the name of the journal
}

// covered is one folder with covers, needed by runs of this server.
type covered struct {
	folder  string
	journal *os.File // locked
	users   int
	made    map[string]bool // names that the journal holds, as far as it was read
	read    int64           // its length then
	idle    *time.Timer     // removes the covers when there are no users any more
}

// lingering is how long covers stay that nobody needs.
const lingering = time.Second

const coversFolder = "covers"

// names are those of names that are covered, by whomever.
func (c *covered) names(names []string) (list []string) {
	if info, err := c.journal.Stat(); err == nil && info.Size() != c.read {
		c.made, c.read = map[string]bool{}, info.Size()
		for _, r := range readJournal(c.journal) {
			c.made[r.Name] = true
		}
	}
	for _, name := range names {
		if c.made[name] {
			list = append(list, name)
		}
	}
	return list
}

// coverRecord is a line of a journal: first what is about to be made, then what was.
type coverRecord struct {
	Folder []byte `json:"folder"` // bytes, because a path need not be UTF-8
	Name   string `json:"name"`
	Time   int64  `json:"time,omitempty"` // when it was about to be made, in nanoseconds
	Ino    uint64 `json:"ino,omitempty"`  // what was made
}

func newCovers(state string) *covers {
	return &covers{dir: filepath.Join(state, coversFolder), held: map[string]*covered{}}
}

// place covers each protected path of a policy that does not exist, though a
// command could make it. The covers stay until release. absent are the paths that
// are covered, and failed those that could not be.
func (c *covers) place(policy sandbox.Policy) (release func(), absent, failed []string) {
	c.clear(policy.Lifted)
	byFolder := map[string][]string{}
	for _, path := range policy.Protected {
		// What was granted is meant to be made.
		if folder := filepath.Dir(path); policy.MayWrite(folder) && !policy.MayWrite(path) {
			byFolder[folder] = append(byFolder[folder], filepath.Base(path))
		}
	}
	if len(byFolder) == 0 {
		return func() {}, nil, failed
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var keys []string
	for folder, names := range byFolder {
		key, covered, missed := c.cover(folder, names)
		if key != "" {
			keys = append(keys, key)
		}
		for _, name := range covered {
			absent = append(absent, filepath.Join(folder, name))
		}
		for _, name := range missed {
			failed = append(failed, filepath.Join(folder, name))
		}
	}
	return sync.OnceFunc(func() { c.release(keys) }), absent, failed
}

// clear removes what stays for a moment where something may be made now. What
// other runs still need is left.
func (c *covers) clear(lifted []string) {
	c.mu.Lock()
	idle := maps.Clone(c.held)
	c.mu.Unlock()
	for key, entry := range idle {
		if slices.ContainsFunc(lifted, func(path string) bool { return sandbox.Within(path, entry.folder) }) {
			c.end(key, entry)
		}
	}
}

// cover makes what is missing in one folder. c.mu is held. key is empty if
// nothing there is covered.
func (c *covers) cover(folder string, names []string) (key string, made, missed []string) {
	dir, st, err := openFolder(folder)
	switch err {
	case nil:
	case unix.ENOENT, unix.ENOTDIR, unix.ELOOP:
		return "", nil, nil // nothing can be made in a folder that is not there
	default:
		return "", nil, names
	}
	defer unix.Close(dir)
	coverable, absent, missed := sortOut(dir, folder, names)
	if len(coverable) == 0 {
		return "", nil, missed
	}
	key = fmt.Sprintf("%x-%x", st.Dev, st.Ino)
	entry := c.held[key]
	if entry == nil {
		path := filepath.Join(c.dir, key)
		if _, err := os.Lstat(path); len(absent) == 0 && err != nil {
			return "", nil, missed // nobody covers anything here
		}
		journal, err := openJournal(path)
		if err != nil {
			return "", nil, append(missed, absent...)
		}
		entry = &covered{folder: folder, journal: journal}
		c.held[key] = entry
	}
	if entry.users++; entry.idle != nil {
		entry.idle.Stop()
	}
	for _, name := range absent {
		if !makeCover(entry.journal, dir, folder, name) {
			missed = append(missed, name)
		}
	}
	return key, entry.names(coverable), missed
}

// sortOut tells which names in a folder are, or could be, those of covers, and
// which of them do not exist. Of missed nobody can tell.
func sortOut(dir int, folder string, names []string) (coverable, absent, missed []string) {
	for _, name := range names {
		var there unix.Stat_t
		err := error(unix.EINTR)
		for err == unix.EINTR {
			err = unix.Fstatat(dir, name, &there, unix.AT_SYMLINK_NOFOLLOW)
		}
		switch {
		case err == unix.ENOENT:
			coverable, absent = append(coverable, name), append(absent, name)
		case err != nil:
			missed = append(missed, name)
		case there.Mode&unix.S_IFMT == unix.S_IFDIR || protect.CoverOf(filepath.Join(folder, name)).File:
			coverable = append(coverable, name)
		}
	}
	return coverable, absent, missed
}

// openFolder holds a folder that no link leads to.
func openFolder(folder string) (fd int, st unix.Stat_t, err error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS}
	if fd, err = unix.Openat2(unix.AT_FDCWD, folder, &how); err != nil {
		return -1, st, err
	}
	if err = unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
	}
	return fd, st, err
}

// openJournal opens and locks a journal that is not just being removed.
func openJournal(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	for {
		file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND|unix.O_NOFOLLOW, 0o600)
		if err != nil {
			return nil, err
		}
		if err := flock(file, unix.LOCK_SH); err != nil {
			file.Close()
			return nil, err
		}
		var st unix.Stat_t
		if err := unix.Fstat(int(file.Fd()), &st); err != nil || st.Nlink > 0 {
			return file, err
		}
		file.Close()
	}
}

// makeCover makes one, having said so. It reports whether there is something now.
// Where commands cannot make anything either, because the folder is not theirs,
// nothing is needed.
func makeCover(journal *os.File, dir int, folder, name string) bool {
	if !note(journal, coverRecord{Folder: []byte(folder), Name: name, Time: time.Now().UnixNano()}) {
		return false
	}
	err := opened(dir, func() error {
		if kind := protect.CoverOf(filepath.Join(folder, name)); kind.File {
			return makeFile(dir, name, kind.Content)
		}
		return unix.Mkdirat(dir, name, 0o755)
	})
	switch err {
	case nil:
	case unix.EEXIST, unix.EACCES, unix.EPERM, unix.EROFS:
		return true
	default:
		return false
	}
	var st unix.Stat_t
	err = unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	return err == nil && note(journal, coverRecord{Folder: []byte(folder), Name: name, Ino: st.Ino})
}

// makeFile makes a file that has its content from the first moment, where it can.
func makeFile(dir int, name, content string) error {
	if content == "" {
		return unix.Mknodat(dir, name, unix.S_IFREG|0o644, 0)
	}
	named := false
	fd, err := unix.Openat(dir, ".", unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o644)
	if err == unix.EOPNOTSUPP || err == unix.EISDIR {
		named = true // not on this file system: then it is empty for some microseconds
		fd, err = unix.Openat(dir, name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o644)
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if _, err := unix.Write(fd, []byte(content)); err != nil || named {
		return err
	}
	return unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), dir, name, unix.AT_SYMLINK_FOLLOW)
}

func note(journal *os.File, r coverRecord) bool {
	line, err := json.Marshal(r)
	if err != nil {
		return false
	}
	_, err = journal.Write(append(line, '\n'))
	return err == nil
}

// release says that a run is over. What nobody needs by then is removed soon.
func (c *covers) release(keys []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, key := range keys {
		entry := c.held[key]
		if entry.users--; entry.users == 0 {
			entry.idle = time.AfterFunc(lingering, func() { c.end(key, entry) })
		}
	}
}

// end removes the covers of a folder, unless a run needs them again.
func (c *covers) end(key string, entry *covered) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if entry.users == 0 && c.held[key] == entry {
		entry.idle.Stop()
		delete(c.held, key)
		uncover(entry.journal)
	}
}

// close removes at once what nobody needs. No run may begin after it.
func (c *covers) close() {
	c.mu.Lock()
	idle := maps.Clone(c.held)
	c.mu.Unlock()
	for key, entry := range idle {
		c.end(key, entry)
	}
}

// uncover removes what a journal names, and the journal, unless somebody else
// holds it. What cannot be removed now stays in it for a later try. It closes the
// journal.
func uncover(journal *os.File) {
	defer journal.Close()
	if flock(journal, unix.LOCK_EX|unix.LOCK_NB) != nil {
		return
	}
	var st unix.Stat_t
	if unix.Fstat(int(journal.Fd()), &st) != nil || st.Nlink == 0 {
		return
	}
	settled := true
	for _, r := range readJournal(journal) {
		switch removeCover(r, filepath.Base(journal.Name())) {
		case nil, unix.ENOENT, unix.ENOTDIR, unix.ELOOP, unix.ENOTEMPTY, unix.EEXIST:
		default: // its folder was closed, or no descriptor is left
			settled = false
		}
	}
	if settled {
		os.Remove(journal.Name())
	}
}

// maxJournal bounds what is read of a journal, in bytes.
const maxJournal = 4 << 20

// readJournal lists what was made, and what may have been before its maker was
// killed.
func readJournal(journal *os.File) []coverRecord {
	info, err := journal.Stat()
	if err != nil {
		return nil
	}
	data := make([]byte, min(info.Size(), maxJournal))
	n, _ := journal.ReadAt(data, 0)
	made := map[string]coverRecord{}
	var list []coverRecord
	for line := range bytes.Lines(data[:n]) {
		var r coverRecord
		if json.Unmarshal(line, &r) != nil {
			continue
		}
		key := string(r.Folder) + "/" + r.Name
		if r.Ino != 0 {
			list = append(list, r)
			delete(made, key)
			continue
		}
		made[key] = r
	}
	for _, r := range made {
		list = append(list, r)
	}
	return list
}

// makingTime bounds how long making a cover takes.
const makingTime = time.Second

// removeCover removes a cover if it is what was made. key identifies its folder.
// The error is a system call's.
func removeCover(r coverRecord, key string) error {
	dir, folder, err := openFolder(string(r.Folder))
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	if fmt.Sprintf("%x-%x", folder.Dev, folder.Ino) != key {
		return nil
	}
	var st unix.Statx_t
	if err := unix.Statx(dir, r.Name, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BASIC_STATS|unix.STATX_BTIME, &st); err != nil {
		return err
	}
	if r.Ino == 0 { // its maker was killed before it knew
		born := time.Unix(st.Btime.Sec, int64(st.Btime.Nsec)).Sub(time.Unix(0, r.Time))
		if st.Mask&unix.STATX_BTIME == 0 || born < -makingTime || born > makingTime || int(st.Uid) != os.Geteuid() {
			return nil
		}
	} else if st.Ino != r.Ino {
		return nil
	}
	kind := protect.CoverOf(filepath.Join(string(r.Folder), r.Name))
	switch {
	case !kind.File && st.Mode&unix.S_IFMT == unix.S_IFDIR:
		return opened(dir, func() error { return unix.Unlinkat(dir, r.Name, unix.AT_REMOVEDIR) }) // fails if something is in it
	case kind.File && st.Mode&unix.S_IFMT == unix.S_IFREG && st.Size == uint64(len(kind.Content)) && st.Nlink == 1 && holdsText(dir, r.Name, kind.Content):
		return opened(dir, func() error { return unix.Unlinkat(dir, r.Name, 0) })
	}
	return nil
}

func holdsText(dir int, name, text string) bool {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	data := make([]byte, len(text)+1)
	n, err := unix.Read(fd, data)
	return err == nil && string(data[:n]) == text
}

// sweepCovers removes what servers left that are dead.
func sweepCovers(state string) {
	dir := filepath.Join(state, coversFolder)
	list, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range list {
		journal, err := os.OpenFile(filepath.Join(dir, e.Name()), os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
		if err == nil {
			uncover(journal)
		}
	}
}
