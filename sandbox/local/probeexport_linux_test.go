package local

import (
	"context"

	"github.com/confine-dev/confine/sandbox"
	"golang.org/x/sys/unix"
)

// Forget makes the calls of a script that are named so do nothing, and reports
// how many there are: what a wrapper that lies leaves out.
func (s *Script) Forget(what string) int {
	n := 0
	for i := range s.calls {
		if s.calls[i].what == what {
			s.calls[i] = call{what: what, nr: unix.SYS_GETPPID}
			n++
		}
	}
	return n
}

// VerifyOne is Verify for one combination.
func (e *Engine) VerifyOne(ctx context.Context, mode sandbox.Mode, namespaces bool) (sandbox.Verification, error) {
	free, err := e.possible(ctx)
	if err != nil {
		return sandbox.Verification{}, err
	}
	if err := e.guard.start(); err != nil {
		return sandbox.Verification{}, err
	}
	x := experiment{key: probeKey{mode: mode}, namespaces: namespaces, thorough: true}
	v := e.unverified(x)
	e.verify(ctx, &v, x, free)
	return v, nil
}
