package server

import (
	"encoding/base64"
	"sync/atomic"
	"unicode/utf8"

	"github.com/confine-dev/confine/rpc"
	"github.com/confine-dev/confine/rpc/proto"
	"github.com/confine-dev/confine/sandbox"
)

// Limits of confine/output.
const (
	chunkBytes  = 64 << 10 // of output in one notification
	unsentBytes = 1 << 20  // of one run on their way, before output is left out
)

// outflow sends the output of one run. A slow editor costs pieces, which are
// counted, never time: write does not block.
type outflow struct {
	conn   *rpc.Conn
	runID  string
	unsent atomic.Int64 // bytes handed to the connection and not written yet

	// The process calls write, never twice at once, and flush is called after
	// its last call; so nothing guards what follows.
	seq     int64
	streams map[sandbox.Stream]*flow
}

// flow is one stream's state.
type flow struct {
	held    []byte // the beginning of a character whose rest has not come yet
	next    int64  // offset behind held
	skipped int64  // bytes left out since the last piece that was sent
}

// newOutflow is nil for an editor that does not want output.
func (c *client) newOutflow(runID string) *outflow {
	if !c.announced() || !c.offer.confine.Output {
		return nil
	}
	return &outflow{conn: c.conn, runID: runID, streams: map[sandbox.Stream]*flow{
		sandbox.StdoutStream: {}, sandbox.StderrStream: {},
	}}
}

// write takes a chunk as sandbox.Spec.Output does.
func (o *outflow) write(chunk sandbox.Chunk) {
	f := o.streams[chunk.Stream]
	data := chunk.Data
	if len(f.held) > 0 {
		data = append(f.held, data...)
		f.held = nil
	}
	offset := chunk.Offset + int64(len(chunk.Data)-len(data))
	for len(data) > 0 {
		n := wholeRunes(data)
		if n == 0 {
			f.held = append([]byte(nil), data...)
			break
		}
		o.send(chunk.Stream, f, offset, data[:n])
		data, offset = data[n:], offset+int64(n)
	}
	f.next = chunk.Offset + int64(len(chunk.Data))
}

// flush sends what was held back, and tells of what was left out at the end.
func (o *outflow) flush() {
	if o == nil {
		return
	}
	for _, stream := range []sandbox.Stream{sandbox.StdoutStream, sandbox.StderrStream} {
		f := o.streams[stream]
		if len(f.held) > 0 {
			o.send(stream, f, f.next-int64(len(f.held)), f.held)
			f.held = nil
		}
		if f.skipped > 0 {
			o.notify(stream, f, proto.Output{Offset: f.next}, 0)
		}
	}
}

// send hands one piece over, or leaves it out.
func (o *outflow) send(stream sandbox.Stream, f *flow, offset int64, data []byte) {
	size := int64(len(data))
	if o.unsent.Load()+size > unsentBytes {
		f.skipped += size
		return
	}
	piece := proto.Output{Offset: offset}
	if utf8.Valid(data) {
		piece.Data = string(data)
	} else {
		piece.Base64 = base64.StdEncoding.EncodeToString(data)
	}
	if !o.notify(stream, f, piece, size) {
		f.skipped += size
	}
}

// notify numbers a piece and sends it. A piece that the connection does not
// take has no number.
func (o *outflow) notify(stream sandbox.Stream, f *flow, piece proto.Output, size int64) bool {
	piece.RunID, piece.Stream, piece.Seq, piece.Skipped = o.runID, stream, o.seq, f.skipped
	o.unsent.Add(size)
	if err := o.conn.Notify(proto.MethodOutput, piece, func() { o.unsent.Add(-size) }); err != nil {
		return false
	}
	o.seq++
	f.skipped = 0
	return true
}

// wholeRunes is how many bytes of data make the next piece: at most chunkBytes,
// and no character cut in two if it may still become one.
func wholeRunes(data []byte) int {
	n := min(len(data), chunkBytes)
	for back := 1; back < utf8.UTFMax && back <= n; back++ {
		b := data[n-back]
		if !utf8.RuneStart(b) {
			continue
		}
		if b >= utf8.RuneSelf && !utf8.FullRune(data[n-back:n]) {
			return n - back
		}
		break
	}
	return n
}
