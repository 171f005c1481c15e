package opensandbox

import (
	"cmp"
	"context"
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
	step := func(ctx context.Context) (moved bool, end int64, f *failure) {
		read, end, f := r.remote.execd.logs(ctx, r.id, cursor, take)
		cursor += read
		return read > 0, end, f
	}
	// drain reads what is left when the command is over, and says what is missing. That
	// is what the first answer speaks of: what comes later is printed by something that
	// the command left behind, and may be without end.
	drain := func(ctx context.Context) string {
		var whole int64
		for call, try := 1, 0; ; call, try = call+1, try+1 {
			moved, end, f := step(ctx)
			whole = cmp.Or(whole, end)
			switch {
			case f == nil, whole > 0 && cursor >= whole:
				return ""
			case moved && call < 10*tries:
				try = 0
			case try+1 >= tries || f.lost() || !p.pause(ctx, p.config.Retry<<try):
				return f.text
			}
			if ctx.Err() != nil {
				return f.text
			}
		}
	}
	running, stopped := context.WithCancel(r.remote.ctx) // until the command is to end
	defer stopped()
	r.reader.Go(func() {
		select {
		case <-r.stopping:
			stopped()
		case <-running.Done():
		}
	})
	failures := 0 // to get the status, in a row
	wait := min(10*time.Millisecond, p.config.Poll)
	for {
		_, _, _ = step(running) // what fails here is read at the end
		state, f := r.status()
		switch {
		case r.remote.ctx.Err() != nil:
			return r.ended()
		case f == nil && !*state.Running:
			missing := drain(running)
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
			last, leave := context.WithTimeout(r.remote.ctx, p.config.Patience)
			defer leave()
			return v, drain(last), nil
		case <-r.remote.ctx.Done():
			timer.Stop()
			return r.ended()
		}
	}
}
