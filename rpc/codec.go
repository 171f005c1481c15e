package rpc

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/sourcegraph/jsonrpc2"
)

// stream reads and writes framed messages. It reads leniently: header names in
// any case, white space or none around the colon, other headers, LF alone,
// stray blank lines. A body is exactly the announced bytes, whatever they are.
// One goroutine may read while another writes.
type stream struct {
	rwc  io.ReadWriteCloser
	r    *bufio.Reader
	w    *bufio.Writer
	max  int // largest body that is kept, in bytes
	junk int // bytes skipped outside any frame since the owner last set it to 0
}

var _ jsonrpc2.ObjectStream = (*stream)(nil)

const (
	maxLine   = 256 // header bytes that are looked at: the end of a longer line
	maxDigits = 12  // of a Content-Length; a longer number is a broken header
)

func newStream(rwc io.ReadWriteCloser, max int) *stream {
	return &stream{rwc: rwc, r: bufio.NewReaderSize(rwc, 32<<10), w: bufio.NewWriter(rwc), max: max}
}

// frameError says that one message was lost and that the stream stands where
// the next one is expected.
type frameError struct {
	code   int64
	reason string
	lost   outline // what is known of the lost message
}

func (e *frameError) Error() string { return e.reason }

// ReadObject reads the next message into v; a *json.RawMessage receives the
// body verbatim, JSON or not. The error is io.EOF between messages,
// io.ErrUnexpectedEOF inside one, a *frameError if reading can go on.
func (s *stream) ReadObject(v any) error {
	length, err := s.header()
	if err != nil {
		return err
	}
	if length > int64(s.max) {
		return s.skip(length)
	}
	body := make([]byte, length)
	if _, err := io.ReadFull(s.r, body); err != nil {
		return unexpected(err)
	}
	if raw, ok := v.(*json.RawMessage); ok {
		*raw = body
		return nil
	}
	return json.Unmarshal(body, v)
}

// WriteObject writes one message; a json.RawMessage goes out verbatim.
func (s *stream) WriteObject(v any) error {
	body, ok := v.(json.RawMessage)
	if !ok {
		var err error
		if body, err = encode(v); err != nil {
			return err
		}
	}
	fmt.Fprintf(s.w, "Content-Length: %d\r\n\r\n", len(body)) // its error stays in s.w until Flush
	s.w.Write(body)
	return s.w.Flush()
}

// Close closes the underlying stream.
func (s *stream) Close() error { return s.rwc.Close() }

// header reads up to the end of one header block and returns its
// Content-Length.
func (s *stream) header() (int64, error) {
	length, begun, problem := int64(-1), false, ""
	for {
		line, err := s.line()
		if err != nil {
			if begun || len(line) > 0 {
				err = unexpected(err)
			}
			return 0, err
		}
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			if !begun {
				continue // a stray blank line between messages
			}
			if problem == "" && length < 0 {
				problem = "the header has no Content-Length"
			}
			if problem != "" {
				return 0, &frameError{code: CodeParseError, reason: problem}
			}
			return length, nil
		}
		begun = true
		value, glued, found := contentLength(line)
		if !found || glued {
			s.noteJunk(line, glued)
		}
		if !found {
			continue
		}
		n, err := parseLength(value)
		switch {
		case err != nil:
			problem = err.Error()
		case length >= 0 && length != n && !glued:
			problem = "the header has two different Content-Lengths"
		default:
			length = n
		}
	}
}

// line reads up to the next line feed and returns the line's last maxLine
// bytes, so that endless lines cost no memory.
func (s *stream) line() ([]byte, error) {
	var line []byte
	for {
		part, err := s.r.ReadSlice('\n')
		line = append(line, part...)
		if over := len(line) - maxLine; over > 0 {
			line = append(line[:0], line[over:]...)
			line[0] = 0 // what follows is not the start of a line
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// contentLength finds the value of a Content-Length header in a line. A peer
// that announced too few bytes, or none, leaves the rest of a body glued to the
// front of the next header; the end of a JSON value marks that. JSON text cannot
// imitate such a line, because a string in it is closed by a quote before the
// line can end.
func contentLength(line []byte) (value string, glued, found bool) {
	name := []byte("content-length")
	i := len(line) - len(name)
	for i >= 0 && !bytes.EqualFold(line[i:i+len(name)], name) {
		i--
	}
	if i < 0 {
		return "", false, false
	}
	before := bytes.TrimSpace(line[:i])
	if n := len(before); n > 0 {
		if glued = before[n-1] == '}' || before[n-1] == ']'; !glued {
			return "", false, false
		}
	}
	after, ok := bytes.CutPrefix(bytes.TrimSpace(line[i+len(name):]), []byte(":"))
	return string(bytes.TrimSpace(after)), glued, ok
}

func parseLength(value string) (int64, error) {
	n, err := strconv.ParseUint(value, 10, 63)
	if err != nil || len(value) > maxDigits {
		return 0, fmt.Errorf("the header's Content-Length %.40q is not a usable number", value)
	}
	return int64(n), nil
}

// noteJunk counts a line that is no header, or the part of it before one.
func (s *stream) noteJunk(line []byte, glued bool) {
	name, _, isHeader := bytes.Cut(line, []byte(":"))
	if glued || !isHeader || bytes.ContainsAny(name, " \t{}[]\",\x00") {
		s.junk += len(line)
	}
}

// skip drops a body that is too large to keep, remembering whose it was.
func (s *stream) skip(length int64) error {
	lost := &frameError{
		code:   CodeInvalidRequest,
		reason: fmt.Sprintf("a message of %d bytes is over the limit of %d bytes", length, s.max),
	}
	if _, err := io.CopyN(&lost.lost, s.r, length); err != nil {
		return unexpected(err)
	}
	return lost
}

// unexpected turns the end of the stream inside a message into an error.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
