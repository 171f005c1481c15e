package sandbox

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
)

// SpillQuota limits what the spill files of many captures take together. When
// a stream needs room, the files of finished streams go first, oldest first;
// if there are none left, the stream loses its own. The zero value is ready.
type SpillQuota struct {
	Max int64 // bytes; 0 means DefaultSpillQuota; not to be changed in use

	mu       sync.Mutex   // guards what follows and the size of every spillFile with this quota
	used     int64        // bytes in all files
	finished []*spillFile // complete files, oldest first
}

// DefaultSpillQuota is the limit of a SpillQuota in bytes.
const DefaultSpillQuota = 1 << 30

var (
	errEvicted   = errors.New("the complete output was removed to make room for that of later commands")
	errQuotaFull = errors.New("the complete output was not kept because the outputs of running commands fill the space set aside for them")
)

// Used is the number of bytes in all spill files that count against the quota.
func (q *SpillQuota) Used() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.used
}

// reserve counts n more bytes for s, or reports that there is no room.
func (q *SpillQuota) reserve(s *spillFile, n int64) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	limit := q.Max
	if limit <= 0 {
		limit = DefaultSpillQuota
	}
	for q.used+n > limit && len(q.finished) > 0 {
		oldest := q.finished[0]
		q.finished = q.finished[1:]
		oldest.evicted.Store(true)
		_ = os.Remove(oldest.path) // if it stays, its bytes do; nothing better can be done
		q.used -= oldest.size
	}
	if q.used+n > limit {
		return false
	}
	q.used += n
	s.size += n
	return true
}

// offer says that s is complete and may be removed when room is needed.
func (q *SpillQuota) offer(s *spillFile) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.finished = append(q.finished, s)
}

// forget stops counting s, unless eviction has done so already.
func (q *SpillQuota) forget(s *spillFile) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if s.evicted.Load() {
		return
	}
	q.used -= s.size
	if i := slices.Index(q.finished, s); i >= 0 {
		q.finished = slices.Delete(q.finished, i, i+1)
	}
}

// spillFile is the file of one stream. Its Capture's mutex orders all calls
// but read, which needs none, and eviction, which touches only finished files.
type spillFile struct {
	path    string
	info    fs.FileInfo // what was created, to know it again
	max     int64
	quota   *SpillQuota // nil if only max counts
	file    *os.File    // nil once finished
	written int64
	size    int64       // guarded by quota.mu: what the quota counts
	evicted atomic.Bool // set once, by the quota
}

// createSpill makes a new file with an unpredictable name. The folder is
// opened first and checked then, so that no swap can get between.
func createSpill(options CaptureOptions) (*spillFile, error) {
	dir, err := os.OpenRoot(options.SpillDir)
	if err != nil {
		return nil, spillFailure(err)
	}
	defer dir.Close()
	info, err := dir.Stat(".")
	if err != nil {
		return nil, spillFailure(err)
	}
	if err := checkPrivate(info); err != nil {
		return nil, spillFailure(fmt.Errorf("folder %q: %w", options.SpillDir, err))
	}
	name := spillName(options.Name)
	// O_EXCL never follows a link, and Root never leaves the folder.
	file, err := dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, spillFailure(err)
	}
	s := &spillFile{path: filepath.Join(options.SpillDir, name), max: options.SpillMax, quota: options.Quota, file: file}
	if s.info, err = file.Stat(); err != nil {
		s.remove()
		return nil, spillFailure(err)
	}
	return s, nil
}

// spillName keeps of the given name only what is harmless in every shell.
func spillName(name string) string {
	name = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, name)
	name = strings.TrimLeft(name[:min(len(name), 100)], "-")
	if name == "" {
		name = "output"
	}
	return name + "-" + rand.Text() + ".log"
}

func spillFailure(err error) error {
	return fmt.Errorf("keeping the complete output: %w", err)
}

func (s *spillFile) write(p []byte) error {
	if s.written+int64(len(p)) > s.max {
		return fmt.Errorf("the complete output was not kept because it is longer than %d bytes", s.max)
	}
	if s.quota != nil && !s.quota.reserve(s, int64(len(p))) {
		return errQuotaFull
	}
	n, err := s.file.Write(p)
	s.written += int64(n)
	if err != nil {
		return spillFailure(err)
	}
	return nil
}

// finish closes the file, whose length must be total by now.
func (s *spillFile) finish(total int64) error {
	file := s.file
	s.file = nil
	info, err := file.Stat()
	if closeErr := file.Close(); err == nil {
		err = closeErr // a full disk may show only now
	}
	if err == nil && (s.written != total || info.Size() != total) {
		err = fmt.Errorf("%w: %d of %d bytes", io.ErrShortWrite, info.Size(), total)
	}
	if err != nil {
		return spillFailure(err)
	}
	if s.quota != nil {
		s.quota.offer(s)
	}
	return nil
}

// remove deletes the file as well as it can.
func (s *spillFile) remove() {
	if s.file != nil {
		_ = s.file.Close()
		s.file = nil
	}
	_ = os.Remove(s.path)
	if s.quota != nil {
		s.quota.forget(s)
	}
}

// read returns exactly n bytes from offset on. It opens the file anew each
// time, so that finished streams hold no descriptor, and refuses whatever else
// may lie under its name by now.
func (s *spillFile) read(offset int64, n int) ([]byte, error) {
	file, err := os.OpenFile(s.path, os.O_RDONLY|noFollow|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil {
		return nil, err
	} else if !os.SameFile(info, s.info) {
		return nil, fs.ErrNotExist
	}
	data := make([]byte, n)
	if _, err := file.ReadAt(data, offset); err != nil {
		return nil, err
	}
	return data, nil
}
