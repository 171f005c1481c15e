package opensandbox

import (
	"context"
	"strings"
	"time"
)

// follow waits for the end of the command, which confine may have asked for.
func (r *remoteRun) follow() (v verdict, missing string, err error) {
	if r.background() {
		return r.followLogs()
	}
	quiet := time.NewTicker(r.provider.config.Patience)
	defer quiet.Stop()
	over := false // as the status had it at the last look
	for {
		select {
		case v := <-r.told:
			return r.check(v)
		case <-r.stopping:
			return r.interrupt()
		case <-r.remote.ctx.Done():
			return r.ended()
		case now := <-quiet.C: // pings come more often
			silent := now.UnixNano()-r.last.Load() >= int64(r.provider.config.Patience)
			state, f := r.status()
			ended := f == nil && !*state.Running
			switch {
			case silent && (ended || f != nil && f.lost()):
				return r.check(verdict{kind: unknown, text: "the service stopped sending what the command printed"})
			case over && ended: // what it left behind may print without end
				return r.check(verdict{kind: unknown, text: "the service did not come to the end of what was printed, long after the command had ended"})
			}
			over = ended
		}
	}
}

// status asks how the command is, once.
func (r *remoteRun) status() (status, *failure) { return r.remote.execd.status(r.remote.ctx, r.id) }

// check compares what the stream says of the end with the status of the command.
// Where the stream says nothing the status decides.
func (r *remoteRun) check(v verdict) (verdict, string, error) {
	p := r.provider
	deadline := time.Now().Add(p.config.Patience)
	for failures := 0; ; {
		state, f := r.status()
		switch {
		case r.remote.ctx.Err() != nil:
			return r.ended()
		case f != nil:
			if failures++; f.lost() || failures >= tries {
				return r.withoutStatus(v, f)
			}
		case *state.Running:
			failures = 0
			if v.kind != unknown && time.Now().After(deadline) {
				return r.giveUp("the service says both that the command ended and that it runs")
			}
		default:
			return r.compare(v, state.verdict())
		}
		select {
		case <-r.stopping:
			if v.kind == unknown {
				return r.interrupt()
			}
		default:
		}
		p.pause(r.remote.ctx, p.config.Poll)
	}
}

// heard is what the stream has said of the end until now.
func (r *remoteRun) heard() verdict {
	select {
	case v := <-r.told:
		return v
	default:
		return verdict{}
	}
}

// withoutStatus settles for what the stream says, if it says something.
func (r *remoteRun) withoutStatus(v verdict, f *failure) (verdict, string, error) {
	switch {
	case v.kind != unknown:
		return v, "", nil
	case v.over:
		return verdict{}, "", r.fault("how the command ended is not known: %s, and: %s", r.provider.shown(v.text), f.text)
	}
	return r.giveUp("how the command ended is not known: " + strings.TrimPrefix(r.provider.shown(v.text)+", and: "+f.text, ", and: "))
}

// compare puts together what the stream and what the status say.
func (r *remoteRun) compare(stream, state verdict) (verdict, string, error) {
	p := r.provider
	switch {
	case state.kind == broken:
		return verdict{}, "", r.fault("the service could not run the command: %s", p.shown(state.text))
	case stream.kind == unknown && state.kind == unknown: // that it is over is known
		return verdict{}, "", r.fault("how the command ended is not known: %s, and: %s", p.shown(stream.text), state.text)
	case stream.kind == unknown && stream.over: // all of the output came before
		return state, "", nil
	case stream.kind == unknown:
		return state, p.shown(stream.text), nil
	case state.kind == unknown:
		return stream, "", nil
	case !stream.agrees(state):
		return verdict{}, "", r.fault("the service gives two accounts of how the command ended")
	}
	return stream, "", nil
}

// interrupt ends the command because confine was asked to, and makes sure that it is
// ended: by its status, or by deleting the sandbox.
func (r *remoteRun) interrupt() (verdict, string, error) {
	p := r.provider
	ctx, cancel := context.WithTimeout(r.remote.ctx, p.config.Patience)
	defer cancel()
	for first := true; ; first = false {
		if first || p.pause(ctx, p.config.Poll) {
			_ = r.remote.execd.interrupt(ctx, r.id) // the status says what came of it
		}
		state, f := r.remote.execd.status(ctx, r.id)
		switch {
		case r.remote.ctx.Err() != nil:
			return r.ended()
		case f == nil && !*state.Running:
			return r.interrupted(state.verdict())
		case ctx.Err() != nil, f != nil && f.lost():
			return r.giveUp("the command was to be ended, and the service does not say that it is")
		}
	}
}

// interrupted is the end of a command that confine ended, and that is over.
func (r *remoteRun) interrupted(state verdict) (verdict, string, error) {
	var told verdict
	timer := time.NewTimer(r.provider.config.Patience)
	defer timer.Stop()
	select { // what it printed last
	case told = <-r.told:
	case <-timer.C:
	case <-r.remote.ctx.Done():
	}
	for _, v := range []verdict{state, told} {
		if v.kind == exited || v.kind == killed {
			return v, "", nil
		}
	}
	return verdict{}, "", r.fault("the command is over, and the service does not say how it ended")
}

// giveUp deletes the sandbox, since a command in it may still run.
func (r *remoteRun) giveUp(why string) (verdict, string, error) {
	r.remote.told.Store(true)
	r.remote.end("nothing else ends a command for sure", false)
	return verdict{}, "", r.fault("%s; %s", why, r.remote.ending())
}

// ended is the end of a command whose sandbox ended.
func (r *remoteRun) ended() (verdict, string, error) {
	<-r.remote.gone
	r.remote.told.Store(true)
	if r.remote.closed && r.remote.left == nil {
		r.stop(func() { r.cancelled = true })
		return verdict{kind: killed, signal: "SIGKILL"}, "", nil
	}
	return verdict{}, "", r.fault("%s", r.remote.ending())
}
