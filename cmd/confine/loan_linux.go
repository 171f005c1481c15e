package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/confine-dev/confine/rpc/proto"
)

// loan is the person's terminal, lent to a command that has one of its own: keys
// pass to the command as they are typed, and what its terminal gives is shown as it
// is. It is lent from just before the command's start until its output is shown; who
// asks the person something asks before or after that.
type loan struct {
	mu     sync.Mutex      // guards what follows
	file   *os.File        // the controlling terminal; nil while it is not lent
	before syscall.Termios // of the terminal, as the person has it
}

// take lends the terminal, and returns the keyboard, until giveBack.
func (l *loan) take() (io.Reader, error) {
	t, err := openTerminal()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		err = errors.New("another command has it")
	} else if l.before, err = terminalSettings(t.file); err == nil {
		err = setTerminal(t.file, raw(l.before))
	}
	if err != nil {
		t.Close()
		return nil, fmt.Errorf("lending the terminal to the command: %w", err)
	}
	l.file = t.file
	return struct{ io.Reader }{t.file}, nil
}

// giveBack ends the loan, if the terminal is lent. Nobody reads the keyboard any more
// when it returns.
func (l *loan) giveBack() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.restore()
	if l.file != nil {
		l.file.Close()
		l.file = nil
	}
}

// restore brings the settings of the person back. What a shell has set since it took
// the terminal from this job is left alone. mu is held.
func (l *loan) restore() {
	if l.file != nil && inForeground(l.file) {
		setTerminal(l.file, l.before) // fails where the terminal is gone
	}
}

// out reports whether the terminal is lent.
func (l *loan) out() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.file != nil
}

// watch tells of each new size of the terminal, and gives it back for as long as this
// program is stopped, until stop is called.
func (l *loan) watch(resized func(proto.TerminalSize)) (stop func()) {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGWINCH, syscall.SIGTSTP, syscall.SIGCONT, syscall.SIGQUIT)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for sig := range signals {
			switch sig {
			case syscall.SIGTSTP:
				l.stopProgram()
			case syscall.SIGCONT:
				l.resume()
				resized(l.size())
			case syscall.SIGWINCH:
				resized(l.size())
			case syscall.SIGQUIT:
				l.giveBack()
				signal.Reset(syscall.SIGQUIT)
				syscall.Kill(os.Getpid(), syscall.SIGQUIT)
			}
		}
	}()
	return func() {
		signal.Stop(signals)
		close(signals)
		<-done
	}
}

// stopProgram does what TSTP, which is caught, would have done.
func (l *loan) stopProgram() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.restore()
	syscall.Kill(os.Getpid(), syscall.SIGSTOP)
}

// resume lends the terminal again after a stop. A job that goes on in the background
// is stopped here, by the kernel, until it is in the foreground.
func (l *loan) resume() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		setTerminal(l.file, raw(l.before)) // fails where the terminal is gone
	}
}

// size is that of the terminal at standard input, whether or not it is lent.
func (l *loan) size() proto.TerminalSize {
	columns, rows := terminalSize(os.Stdin)
	return proto.TerminalSize{Columns: columns, Rows: rows}
}
