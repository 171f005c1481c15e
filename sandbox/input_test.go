package sandbox

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
)

func TestInputWaitsForWhoReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := NewInput()
		type read struct {
			text string
			err  error
		}
		reads := make(chan read)
		go func() {
			for {
				p := make([]byte, 4)
				n, err := i.Read(p)
				reads <- read{string(p[:n]), err}
				if err != nil {
					return
				}
			}
		}()
		synctest.Wait()
		if n, err := i.Write([]byte("abcdef")); n != 6 || err != nil || i.Queued() != 6 {
			t.Fatalf("wrote %d, %v; %d are queued", n, err, i.Queued())
		}
		if got := <-reads; got != (read{"abcd", nil}) {
			t.Errorf("read %+v", got)
		}
		if got := <-reads; got != (read{"ef", nil}) || i.Queued() != 2 {
			t.Errorf("read %+v; %d are queued, of which the last read are still being passed on", got, i.Queued())
		}
		synctest.Wait()
		if i.Queued() != 0 || !i.Open() {
			t.Errorf("%d are queued, open: %v", i.Queued(), i.Open())
		}
		i.Close()
		if got := <-reads; got.err != io.EOF || i.Open() {
			t.Errorf("after the end %+v, open: %v", got, i.Open())
		}
		if n, err := i.Write([]byte("x")); n != 0 || !errors.Is(err, ErrInputClosed) {
			t.Errorf("wrote %d, %v after the end", n, err)
		}
	})
}

// TestInputIsBounded: what is being passed on counts, too.
func TestInputIsBounded(t *testing.T) {
	i := NewInput()
	if n, err := i.Write([]byte(strings.Repeat("x", MaxQueuedInput+1))); n != MaxQueuedInput || err != nil {
		t.Fatalf("took %d, %v", n, err)
	}
	if n, _ := i.Read(make([]byte, 10)); n != 10 || i.Room() != 0 {
		t.Errorf("read %d, and there is room for %d", n, i.Room())
	}
	i.Read(make([]byte, 5))
	if i.Room() != 10 {
		t.Errorf("there is room for %d", i.Room())
	}
}

func TestInputThatNobodyReads(t *testing.T) {
	i := NewInput()
	i.Write([]byte("x"))
	i.Stop()
	if _, err := i.Write([]byte("x")); !errors.Is(err, ErrInputClosed) || i.Queued() != 0 || i.Open() {
		t.Errorf("wrote: %v; %d are queued, open: %v", err, i.Queued(), i.Open())
	}
	if n, err := i.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("read %d, %v", n, err)
	}
}
