package rpctest

import (
	"bufio"
	"fmt"
	"io"
	"net/textproto"
	"strconv"
)

// frameReader reads the base protocol with a codec that shares nothing with
// the server's.
type frameReader struct {
	buffered *bufio.Reader
	headers  *textproto.Reader
}

func newFrameReader(r io.Reader) *frameReader {
	b := bufio.NewReader(r)
	return &frameReader{buffered: b, headers: textproto.NewReader(b)}
}

func (f *frameReader) next() ([]byte, error) {
	header, err := f.headers.ReadMIMEHeader()
	if err != nil {
		return nil, err
	}
	size, err := strconv.Atoi(header.Get("Content-Length"))
	if err != nil {
		return nil, fmt.Errorf("reading Content-Length: %w", err)
	}
	body := make([]byte, size)
	_, err = io.ReadFull(f.buffered, body)
	return body, err
}

// frame is body as it goes over the wire.
func frame(body []byte) []byte {
	return append(fmt.Appendf(nil, "Content-Length: %d\r\n\r\n", len(body)), body...)
}
