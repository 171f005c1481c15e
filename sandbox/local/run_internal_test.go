//go:build unix

package local

import (
	"bytes"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/confine-dev/confine/sandbox"
)

// Output that waits in a pipe when draining is given up is told all the same,
// although something still holds the pipe.
func TestPumpReadsWhatWasWrittenInTime(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer write.Close()
	want := bytes.Repeat([]byte("output\n"), 8000)
	if _, err := write.Write(want); err != nil {
		t.Fatal(err)
	}
	if err := read.SetReadDeadline(time.Now().Add(-time.Second)); err != nil {
		t.Fatal(err)
	}
	var got []byte
	r := newRun(sandbox.Spec{Output: func(c sandbox.Chunk) { got = append(got, c.Data...) }}, sandbox.Facts{}, sandbox.CaptureOptions{})
	r.pump(sandbox.StdoutStream, read)
	if !bytes.Equal(got, want) {
		t.Errorf("%d bytes were told, want %d", len(got), len(want))
	}
}

// huntingLeader's command is over at once; what it left takes until hunted.
type huntingLeader struct {
	overCalled chan struct{} // closed once the command is over
	hunted     chan struct{} // closed by the test
	signals    int
}

func (l *huntingLeader) wait(over func()) (ending, error) {
	over()
	close(l.overCalled)
	<-l.hunted
	return ending{code: 7}, nil
}
func (l *huntingLeader) signal(syscall.Signal) error { l.signals++; return nil }
func (l *huntingLeader) kill()                       { l.signals++ }

// A command that ended in time was neither late nor cancelled because what it
// left behind had still to be ended.
func TestOverIsOver(t *testing.T) {
	l := &huntingLeader{overCalled: make(chan struct{}), hunted: make(chan struct{})}
	r := newRun(sandbox.Spec{}, sandbox.Facts{}, sandbox.CaptureOptions{})
	r.leader = l
	var pipes []*os.File
	for range 2 {
		read, write, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		write.Close()
		pipes = append(pipes, read)
	}
	r.follow(pipes[0], pipes[1], nil)
	<-l.overCalled
	r.Cancel()
	r.expire()
	r.kill()
	close(l.hunted)
	result, err := r.Wait()
	if err != nil || result.TimedOut || result.Cancelled || result.ExitCode != 7 || l.signals > 0 {
		t.Errorf("the result is %+v, %v, after %d signals", result, err, l.signals)
	}
}
