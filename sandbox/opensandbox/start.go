package opensandbox

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/protect"
)

// remoteRun is a command of a remote sandbox.
type remoteRun struct {
	*run
	remote *remote
	id     string
	last   atomic.Int64 // when something came, in nanoseconds
	told   chan verdict // gets what the stream says of the end, and is closed with the stream
	reader sync.WaitGroup

	before *protect.Snapshot // of a mounted workspace that can be written; else nil
}

// begin starts a command and returns when it is known to have begun.
func (p *Provider) begin(rem *remote, spec sandbox.Spec, text string) (*run, error) {
	facts := p.facts(spec.Policy)
	o := order{Command: text, Cwd: spec.Dir, Envs: variables(spec, facts), Background: p.config.Output == OutputBytes}
	if spec.Timeout > 0 { // confine ends it; this is for when confine cannot
		o.Timeout = (spec.Timeout + 4*sandbox.DefaultGrace).Milliseconds()
	}
	r := &remoteRun{run: p.newRun(spec, facts), remote: rem, told: make(chan verdict, 1)}
	if p.config.Workspace == WorkspaceMount && spec.Policy.Mode == sandbox.WorkspaceWrite {
		r.before = protect.Take(spec.Policy, true)
	}
	ctx, leave := context.WithCancel(rem.ctx)
	late := time.AfterFunc(p.config.Patience, leave)
	response, f := rem.execd.start(ctx, o)
	for try := 1; f != nil && !f.sent && try < tries && p.pause(ctx, p.config.Retry<<try); try++ {
		response, f = rem.execd.start(ctx, o)
	}
	if f != nil {
		late.Stop()
		leave()
		return nil, p.notBegun(rem, spec, f)
	}
	first := make(chan string, 1) // the id, or nothing if the stream ended before
	r.reader.Go(func() { r.read(response, first) })
	id, ok := <-first
	late.Stop()
	if !ok || ctx.Err() != nil {
		leave()
		r.reader.Wait()
		return nil, p.unsure(rem, spec, "the service took the command and did not say that it began")
	}
	r.id = id
	lift := r.limit()
	p.working.Go(func() { // Start is among them still
		v, missing, err := r.follow()
		lift()
		leave()
		r.reader.Wait()
		if r.before != nil {
			r.facts.Planted = r.before.Planted(nil)
		}
		r.finish(v, missing, err)
	})
	return r.run, nil
}

// notBegun is the error for a start that was not answered with a stream.
func (p *Provider) notBegun(rem *remote, spec sandbox.Spec, f *failure) error {
	if f.status == http.StatusBadRequest && !p.folderThere(rem, spec.Dir) {
		return &sandbox.StartError{Kind: sandbox.BadWorkingDirectory, Path: spec.Dir, Err: errors.New("there is no such folder in the remote sandbox")}
	}
	if f.sent && f.status != http.StatusBadRequest {
		return p.unsure(rem, spec, f.text)
	}
	detail := "starting the command: " + f.text
	if !rem.alive() {
		<-rem.gone
		rem.told.Store(true)
		detail = rem.ending()
	} else if _, gone := p.lifecycle.get(rem.ctx, rem.id); gone != nil && gone.lost() {
		rem.told.Store(true)
		rem.end("the service has no such sandbox any more", false)
		detail = rem.ending()
	}
	return unusable(spec.Policy, detail, append(f.remedies(), seeDoctor)...)
}

// unsure is the error for a start of which nobody knows whether it was one. Whatever
// began is ended with its sandbox.
func (p *Provider) unsure(rem *remote, spec sandbox.Spec, why string) error {
	rem.told.Store(true)
	rem.end("what began there could not be told apart", false)
	err := unusable(spec.Policy, why+"; "+rem.ending(), seeDoctor)
	err.Started, err.Unsure = true, true
	return err
}

// folderThere reports whether a folder is in the sandbox, as far as can be told: a
// command that begins in it can begin.
func (p *Provider) folderThere(rem *remote, dir string) bool {
	ctx, cancel := context.WithTimeout(rem.ctx, p.config.Patience)
	defer cancel()
	v, f := rem.execd.run(ctx, order{Command: "test -d " + quote(dir)})
	return f != nil || v.kind != exited || v.code != 1
}

// read takes the events of a stream, the id of the command first. It ends with the
// stream or its context.
func (r *remoteRun) read(response *http.Response, first chan<- string) {
	defer close(r.told)
	defer response.Body.Close()
	stream := newEvents(response.Body)
	begun := false
	for {
		e, end, ok := stream.next()
		r.last.Store(time.Now().UnixNano())
		if !ok {
			r.tell(end, begun, first)
			return
		}
		switch v, last := e.final(); {
		case last && begun && v.kind == exited && r.background():
			return // the request ended, not the command
		case last:
			r.tell(v, begun, first)
			return
		case e.Type == "init" && !begun:
			if !plainID.MatchString(e.Text) {
				close(first)
				return
			}
			begun = true
			first <- e.Text
		case e.Type == "stdout" && begun:
			r.emit(sandbox.StdoutStream, e.line())
		case e.Type == "stderr" && begun:
			r.emit(sandbox.StderrStream, e.line())
		}
	}
}

// background reports whether execd runs the command in the background.
func (r *remoteRun) background() bool { return r.provider.config.Output == OutputBytes }

func (r *remoteRun) tell(v verdict, begun bool, first chan<- string) {
	if !begun {
		close(first)
		return
	}
	r.told <- v
}
