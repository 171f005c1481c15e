package opensandbox

import (
	"time"

	"github.com/confine-dev/confine/sandbox"
)

// followLogs is follow for a command that execd runs in the background, of which it
// keeps what was printed.
func (r *remoteRun) followLogs() (verdict, string, error) {
	p := r.provider
	var cursor int64
	take := func(data []byte) { r.emit(sandbox.StdoutStream, data) }
	// step reads what there is; moved reports whether that was anything.
	step := func() (moved bool, f *failure) {
		read, f := r.remote.execd.logs(r.remote.ctx, r.id, cursor, take)
		cursor += read
		return read > 0, f
	}
	// drain reads what is left when the command is over, and says what is missing. One
	// answer has all of it: what comes later is printed by something it left behind.
	drain := func() string {
		for call, try := 1, 0; ; call, try = call+1, try+1 {
			moved, f := step()
			switch {
			case f == nil:
				return ""
			case moved && call < 10*tries:
				try = 0
			case try+1 >= tries || f.lost() || !p.pause(r.remote.ctx, p.config.Retry<<try):
				return f.text
			}
		}
	}
	failures := 0 // to get the status, in a row
	wait := min(10*time.Millisecond, p.config.Poll)
	for {
		_, _ = step() // what fails here is read at the end
		state, f := r.status()
		switch {
		case r.remote.ctx.Err() != nil:
			return r.ended()
		case f == nil && !*state.Running:
			missing := drain()
			if v := state.verdict(); v.kind != unknown {
				out, _, err := r.compare(v, v)
				return out, missing, err
			}
			return r.giveUp("how the command ended is not known: " + state.verdict().text)
		case f != nil:
			if failures++; f.lost() || failures >= 2*tries {
				return r.withoutStatus(r.heard(), f)
			}
		default:
			failures = 0
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
			wait = min(2*wait, p.config.Poll)
		case <-r.stopping:
			timer.Stop()
			v, _, err := r.interrupt()
			if err != nil {
				return v, "", err
			}
			return v, drain(), nil
		case <-r.remote.ctx.Done():
			timer.Stop()
			return r.ended()
		}
	}
}
