package sandbox

// Capture holds what one stream printed: a tail in memory and, for longer
// streams, the whole in a spill file.
type Capture struct{}

// CaptureOptions configures a Capture.
type CaptureOptions struct {
	Keep     int    // bytes kept in memory; 0 means DefaultKeep
	SpillDir string // existing private folder; empty means none
	Name     string // begins the spill file's name
}

// NewCapture returns an empty capture.
func NewCapture(CaptureOptions) *Capture { return &Capture{} }

// Write adds to the stream. It never fails.
func (c *Capture) Write(p []byte) (int, error) { return len(p), nil }

// Finish says that the stream is complete.
func (c *Capture) Finish() {}

// Total is the number of bytes seen so far.
func (c *Capture) Total() int64 { return 0 }

// Tail is the end of the stream as valid UTF-8, cut at a rune border, and
// whether anything before it was left out.
func (c *Capture) Tail() (text string, truncated bool) { return "", false }

// SpillPath names the file that holds the whole stream, or is empty.
func (c *Capture) SpillPath() string { return "" }

// ReadAt returns up to max bytes from offset on, and the offset of the first
// byte returned, which is larger than offset if bytes are no longer held.
func (c *Capture) ReadAt(offset int64, max int) (data []byte, at int64) { return nil, offset }
