package local

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// pipes connect a run with its child.
type pipes struct {
	stdinRead, stdoutWrite, stderrWrite, statusWrite *os.File // the child's
	stdinWrite, stdoutRead, stderrRead, statusRead   *os.File // ours

	// A socket on which the child hands descriptors over; nil if it has none to.
	controlChild, control *os.File

	// What a runner prints and reports; nil without one.
	runnerStderrWrite, runnerReportWrite *os.File // the child's
	runnerStderr, runnerReport           *os.File // ours
}

// openPipes makes the pipes; without input the command reads the null device,
// as a character device, because commands look at what kind it is. A terminal takes
// the place of the command's three.
func openPipes(input, terminal bool) (p *pipes, err error) {
	p = &pipes{}
	defer func() {
		if err != nil {
			p.close()
			err = fmt.Errorf("making the command's pipes: %w", err)
		}
	}()
	if terminal {
		p.statusRead, p.statusWrite, err = os.Pipe()
		return p, err
	}
	if input {
		p.stdinRead, p.stdinWrite, err = os.Pipe()
	} else {
		p.stdinRead, err = os.Open(os.DevNull)
	}
	if err != nil {
		return p, err
	}
	if p.stdoutRead, p.stdoutWrite, err = os.Pipe(); err != nil {
		return p, err
	}
	if p.stderrRead, p.stderrWrite, err = os.Pipe(); err != nil {
		return p, err
	}
	p.statusRead, p.statusWrite, err = os.Pipe()
	return p, err
}

// openControl makes the socket for what the child hands over.
func (p *pipes) openControl() (err error) {
	p.control, p.controlChild, err = socketPair(unix.SOCK_SEQPACKET)
	return err
}

// openRunner makes the pipes for what a runner says of itself.
func (p *pipes) openRunner() (err error) {
	if p.runnerStderr, p.runnerStderrWrite, err = os.Pipe(); err == nil {
		p.runnerReport, p.runnerReportWrite, err = os.Pipe()
	}
	if err != nil {
		return fmt.Errorf("making the runner's pipes: %w", err)
	}
	return nil
}

func closeFiles(files ...**os.File) {
	for _, f := range files {
		if *f != nil {
			(*f).Close()
			*f = nil
		}
	}
}

func (p *pipes) closeChildEnds() {
	closeFiles(&p.stdinRead, &p.stdoutWrite, &p.stderrWrite, &p.statusWrite, &p.controlChild, &p.runnerStderrWrite, &p.runnerReportWrite)
}

// close closes what was not taken.
func (p *pipes) close() {
	p.closeChildEnds()
	closeFiles(&p.stdinWrite, &p.stdoutRead, &p.stderrRead, &p.statusRead, &p.control, &p.runnerStderr, &p.runnerReport)
}

// takeStatus gives the status pipe away.
func (p *pipes) takeStatus() *os.File {
	status := p.statusRead
	p.statusRead = nil
	return status
}

// takeStreams gives the output pipes and, if there is one, the input away.
func (p *pipes) takeStreams() (stdout, stderr, stdin *os.File) {
	stdout, stderr, stdin = p.stdoutRead, p.stderrRead, p.stdinWrite
	p.stdoutRead, p.stderrRead, p.stdinWrite = nil, nil, nil
	return stdout, stderr, stdin
}

// streams are the command's ends, in the order of their numbers; none of a terminal.
func (p *pipes) streams() []*os.File {
	if p.stdinRead == nil {
		return nil
	}
	return []*os.File{p.stdinRead, p.stdoutWrite, p.stderrWrite}
}
