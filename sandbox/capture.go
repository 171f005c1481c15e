package sandbox

import (
	"errors"
	"strings"
	"sync"
	"unicode/utf8"
)

// Capture holds what one stream printed: its end in memory and, once that is
// not enough, the whole in a spill file. Whatever happens to the file, the end
// in memory stays right and Write succeeds. All methods may be called at any
// time and from several goroutines.
type Capture struct {
	mu       sync.Mutex // guards everything below
	keep     int
	total    int64
	ring     []byte // the last min(total, keep) bytes; byte n of the stream lies at n % keep
	finished bool

	options CaptureOptions
	spill   *spillFile // nil before the first overflow and after a failure
	err     error      // why there is no spill file although one was wanted
}

// CaptureOptions configures a Capture.
type CaptureOptions struct {
	Keep     int    // bytes kept in memory; 0 means DefaultKeep
	SpillDir string // existing folder of our own with mode 0700; empty means no spill file
	Name     string // begins the spill file's name; made harmless if it is not

	// SpillMax limits the spill file in bytes; 0 means DefaultSpillMax. The
	// file of a longer stream is removed, because a file that looks complete
	// and is not misleads its reader.
	SpillMax int64

	// Quota, if set, limits the spill files of all captures that share it.
	Quota *SpillQuota
}

// DefaultSpillMax is the limit of one spill file in bytes.
const DefaultSpillMax = 64 << 20

// NewCapture returns an empty capture. It touches no file before the stream is
// longer than Keep.
func NewCapture(options CaptureOptions) *Capture {
	if options.Keep <= 0 {
		options.Keep = DefaultKeep
	}
	if options.SpillMax <= 0 {
		options.SpillMax = DefaultSpillMax
	}
	return &Capture{keep: options.Keep, options: options}
}

// Write adds to the stream. It never fails: what cannot be written to the
// spill file costs the file, not the stream. After Finish it does nothing.
func (c *Capture) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.finished {
		return len(p), nil
	}
	c.writeSpill(p)
	c.writeRing(p)
	return len(p), nil
}

// writeSpill keeps the file complete up to and including p, opening it when p
// is the first that the memory cannot hold.
func (c *Capture) writeSpill(p []byte) {
	if c.options.SpillDir == "" || c.err != nil || c.total+int64(len(p)) <= int64(c.keep) {
		return
	}
	if c.spill == nil {
		// Nothing was left out so far, so the ring is the stream from byte 0.
		spill, err := createSpill(c.options)
		if err == nil {
			err = spill.write(c.ring)
		}
		c.spill, c.err = spill, err
	}
	if c.err == nil {
		c.err = c.spill.write(p)
	}
	if c.err != nil {
		c.dropSpill()
	}
}

func (c *Capture) writeRing(p []byte) {
	c.total += int64(len(p))
	room := min(c.keep-len(c.ring), len(p))
	c.ring = append(c.ring, p[:room]...)
	p = p[room:]
	p = p[max(0, len(p)-c.keep):]
	// What is left goes into a full ring, where byte n of the stream lies at n % keep.
	at := int((c.total - int64(len(p))) % int64(c.keep))
	n := copy(c.ring[at:], p)
	copy(c.ring, p[n:])
}

// dropSpill gives up the file but keeps the reason.
func (c *Capture) dropSpill() {
	if c.spill != nil {
		c.spill.remove()
		c.spill = nil
	}
}

// Finish says that the stream is complete. It may be called again.
func (c *Capture) Finish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.finished {
		return
	}
	c.finished = true
	if c.spill == nil {
		return
	}
	if c.err = c.spill.finish(c.total); c.err != nil {
		c.dropSpill()
	}
}

// Discard removes the spill file; no new one is made. The end in memory stays.
func (c *Capture) Discard() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = errDiscarded
	}
	c.dropSpill()
}

var errDiscarded = errors.New("the complete output was removed")

// Total is the number of bytes seen so far.
func (c *Capture) Total() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.total
}

// SpillPath names the file that holds the whole stream from byte 0, or is
// empty: nothing was left out so far, no file was wanted, or SpillError says
// why there is none.
func (c *Capture) SpillPath() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.spill == nil || c.spill.evicted.Load() {
		return ""
	}
	return c.spill.path
}

// SpillError says why the whole stream is not to be had although a spill file
// was wanted. It is nil while nothing is missing.
func (c *Capture) SpillError() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.spill != nil && c.spill.evicted.Load() {
		return errEvicted
	}
	return c.err
}

// Tail is the end of the stream as valid UTF-8 and whether anything before it
// was left out. A rune that the cut would split is left out; while the stream
// still grows, so is one that is not complete yet. Each byte that is no UTF-8
// becomes U+FFFD.
func (c *Capture) Tail() (text string, truncated bool) {
	c.mu.Lock()
	data := c.held(c.oldest(), len(c.ring))
	truncated = c.oldest() > 0
	growing := !c.finished
	c.mu.Unlock()
	if truncated {
		data = trimHead(data)
	}
	if growing {
		data = trimTail(data)
	}
	return validText(data), truncated
}

// held copies up to n bytes of the ring, which must hold the offset from.
func (c *Capture) held(from int64, n int) []byte {
	n = int(min(int64(n), c.total-from))
	start := int(from % int64(c.keep))
	first := min(n, len(c.ring)-start)
	out := append(make([]byte, 0, n), c.ring[start:start+first]...)
	return append(out, c.ring[:n-first]...)
}

// ReadAt returns up to n bytes of the stream from offset on, and the offset
// of the first byte returned, which is larger than offset if bytes are no
// longer held. At the end of the stream, data is empty.
func (c *Capture) ReadAt(offset int64, n int) (data []byte, at int64) {
	offset = max(offset, 0)
	c.mu.Lock()
	total, spill := c.total, c.spill
	if n <= 0 || offset >= total {
		c.mu.Unlock()
		return nil, offset
	}
	if offset >= c.oldest() || spill == nil {
		defer c.mu.Unlock()
		at = max(offset, c.oldest())
		return c.held(at, n), at
	}
	c.mu.Unlock()

	// What is written of a spill file never changes, so no lock is needed and
	// a slow disk holds up nobody else.
	if data, err := spill.read(offset, int(min(int64(n), total-offset))); err == nil {
		return data, offset
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	at = max(offset, c.oldest())
	return c.held(at, n), at
}

// oldest is the offset of the first byte in memory.
func (c *Capture) oldest() int64 { return c.total - int64(len(c.ring)) }

// trimHead drops the rest of a rune that a cut left behind.
func trimHead(data []byte) []byte {
	for i := 0; i < min(utf8.UTFMax-1, len(data)); i++ {
		if utf8.RuneStart(data[i]) {
			return data[i:]
		}
	}
	return data[min(utf8.UTFMax-1, len(data)):]
}

// trimTail drops the beginning of a rune whose rest has not come yet.
func trimTail(data []byte) []byte {
	for i := len(data) - 1; i >= 0 && i > len(data)-utf8.UTFMax; i-- {
		if utf8.RuneStart(data[i]) {
			if !utf8.FullRune(data[i:]) {
				return data[:i]
			}
			break
		}
	}
	return data
}

func validText(data []byte) string {
	if utf8.Valid(data) {
		return string(data)
	}
	var b strings.Builder
	b.Grow(len(data) + len(data)/8)
	for _, r := range string(data) {
		b.WriteRune(r)
	}
	return b.String()
}
