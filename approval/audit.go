package approval

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Audit is an append-only file with one JSON object a line: "asked" before a
// person sees a question, "decided" before what was allowed may run, "unasked"
// for a decision beyond the configured policy that took no question, "revoked"
// when a person ends what an answer means for later requests. Every
// line is on disk before the call that writes it returns.
//
// The file and its folder belong to the person alone. Several confine servers
// may share a file. When it is full it becomes the old file (path + ".1"), and
// the old file before that is removed.
type Audit struct {
	path string
	max  int64
	open func(path string, flag int) (auditFile, error) // the system, but for tests

	mu   sync.Mutex // guards file
	file auditFile  // nil until the first write and after a fault
}

// AuditOptions configures an Audit.
type AuditOptions struct {
	MaxBytes int64 // of the file before it becomes the old one; 0 means 32 MiB, at least 4 KiB
}

// DefaultAuditBytes is what an audit file may grow to.
const DefaultAuditBytes = 32 << 20

// auditFile is what an Audit needs of an open file.
type auditFile interface {
	Write(p []byte) (int, error)
	ReadAt(p []byte, off int64) (int, error)
	Truncate(size int64) error
	Sync() error
	Stat() (fs.FileInfo, error)
	Fd() uintptr
	Close() error
}

// OpenAudit prepares the file at path, an absolute path. The folder is created
// if it is missing. It is an error if folder or file could be read or written
// by anybody else, belong to somebody else, or if the file is a link.
func OpenAudit(path string, o AuditOptions) (*Audit, error) {
	if !filepath.IsAbs(path) {
		return nil, fmt.Errorf("opening audit file %q: the path is not absolute", path)
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = DefaultAuditBytes
	}
	if o.MaxBytes < 4<<10 {
		return nil, fmt.Errorf("opening audit file %q: %d bytes are too few to keep a record", path, o.MaxBytes)
	}
	a := &Audit{path: path, max: o.MaxBytes, open: openSystem}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.reopen(); err != nil {
		return nil, a.errorOf(err)
	}
	return a, nil
}

func openSystem(path string, flag int) (auditFile, error) { return os.OpenFile(path, flag, 0o600) }

// NoAudit returns an audit that keeps nothing, for tests and for showing what
// would be asked.
func NoAudit() *Audit { return &Audit{} }

// Close closes the file. Nothing can be recorded afterwards.
func (a *Audit) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.open = func(string, int) (auditFile, error) { return nil, fs.ErrClosed }
	return a.drop()
}

func (a *Audit) drop() error {
	if a.file == nil {
		return nil
	}
	err := a.file.Close()
	a.file = nil
	return err
}

// errorOf tells a person what follows from a fault, and what to do.
func (a *Audit) errorOf(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("recording in audit file %q: %w; nothing that needs approval runs without a record: mend this and try again", a.path, err)
}

// append writes one record and waits until it is on disk.
func (a *Audit) append(record any) error {
	if a.path == "" {
		return nil // NoAudit
	}
	line, err := json.Marshal(record)
	if err != nil {
		return a.errorOf(err)
	}
	line = append(line, '\n')
	if int64(len(line)) > a.max/8 {
		return a.errorOf(fmt.Errorf("the record has %d bytes and at most %d fit: put a long command in a script", len(line), a.max/8))
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.write(line); err != nil {
		a.drop() // the state of this descriptor is not known any more
		return a.errorOf(err)
	}
	return nil
}

// write is called with mu held. Other servers may write, rotate or remove the
// file at any time but while it is locked.
func (a *Audit) write(line []byte) error {
	size, err := a.lock()
	if err != nil {
		return err
	}
	if size+int64(len(line)) > a.max {
		if err := a.rotate(); err != nil {
			return fmt.Errorf("replacing the full file: %w", err)
		}
		if size, err = a.lock(); err != nil {
			return err
		}
	}
	defer unlock(a.file)
	if size > 0 {
		last := make([]byte, 1)
		if _, err := a.file.ReadAt(last, size-1); err != nil {
			return err
		}
		if last[0] != '\n' { // a writer died here: its half line must not spoil ours
			line = append([]byte{'\n'}, line...)
		}
	}
	if n, err := a.file.Write(line); err != nil || n < len(line) {
		if err == nil {
			err = errors.New("short write")
		}
		a.file.Truncate(size) // if this fails too, the next writer starts a new line
		return err
	}
	return a.file.Sync()
}

// lockWait bounds how long another server may hold the file.
const lockWait = 2 * time.Second

// lock makes sure that the open file is the one at path, locks it against
// other servers and returns its size.
func (a *Audit) lock() (size int64, err error) {
	for deadline := time.Now().Add(lockWait); ; {
		if !a.current() {
			if err := a.reopen(); err != nil {
				return 0, err
			}
		}
		switch err := tryLock(a.file); {
		case err == nil && a.current():
			info, err := a.file.Stat()
			if err != nil {
				return 0, err
			}
			return info.Size(), nil
		case err == nil:
			unlock(a.file) // rotated away while we waited
		case !errors.Is(err, errLocked):
			return 0, err
		}
		if time.Now().After(deadline) {
			return 0, errors.New("another process does not let go of it")
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// current reports whether path still names the open file.
func (a *Audit) current() bool {
	if a.file == nil {
		return false
	}
	open, err := a.file.Stat()
	if err != nil {
		return false
	}
	named, err := os.Lstat(a.path)
	return err == nil && os.SameFile(open, named)
}

// reopen opens or creates the file, and refuses one that others could have
// prepared or could read.
func (a *Audit) reopen() error {
	a.drop()
	folder := filepath.Dir(a.path)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	info, err := os.Stat(folder)
	if err != nil {
		return err
	}
	if err := private(info); err != nil {
		return fmt.Errorf("folder %q %w", folder, err)
	}
	f, err := a.open(a.path, os.O_RDWR|os.O_APPEND|openFlags)
	created := errors.Is(err, fs.ErrNotExist)
	if created {
		f, err = a.open(a.path, os.O_RDWR|os.O_APPEND|os.O_CREATE|os.O_EXCL|openFlags)
		if errors.Is(err, fs.ErrExist) { // another server was quicker, or it is a dangling link
			f, err = a.open(a.path, os.O_RDWR|os.O_APPEND|openFlags)
		}
	}
	if err != nil {
		return err
	}
	if err := ours(f, a.path); err != nil {
		f.Close()
		return err
	}
	a.file = f
	if created {
		return syncFolder(folder)
	}
	return nil
}

// ours checks what was opened, not what the name says by now.
func ours(f auditFile, path string) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	named, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || !os.SameFile(info, named) {
		return errors.New("it is a link or no regular file: remove it")
	}
	return private(info)
}

// rotate makes the locked file the old one. The next lock creates a new one.
func (a *Audit) rotate() error {
	if closeBeforeRename {
		a.drop()
	}
	err := os.Rename(a.path, a.path+".1")
	a.drop() // and lets go of the lock
	if err != nil {
		return err
	}
	return syncFolder(filepath.Dir(a.path))
}
