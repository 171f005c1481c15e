package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/confine-dev/confine/rpc"
	"github.com/confine-dev/confine/rpc/proto"
)

// longRun is when a run is long enough to show progress that the editor did not
// ask for.
const longRun = time.Second

// showProgress shows that a run goes on: at once if its request came with a
// token, else when it has become a long one and the editor shows progress. The
// returned function ends it.
func (c *client) showProgress(r *run) (end func()) {
	if hasToken(r.plan.token) {
		c.beginProgress(r, r.plan.token)
		return func() { c.endProgress(r.plan.token) }
	}
	if !c.offer.progress {
		return func() {}
	}
	ctx, stop := context.WithCancel(c.ctx)
	shown := make(chan bool, 1) // the goroutine's only word
	c.working.Go(func() { shown <- c.progressLater(ctx, r) })
	return func() {
		stop()
		if <-shown {
			c.endProgress(createdToken(r))
		}
	}
}

// progressLater creates a token when the run has become a long one.
func (c *client) progressLater(ctx context.Context, r *run) (begun bool) {
	timer := time.NewTimer(longRun)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return false
	}
	token := createdToken(r)
	if err := c.conn.Call(ctx, proto.MethodProgressCreate, proto.ProgressTokenParams{Token: token}, nil); err != nil {
		return false // the editor does not want it, or the run has ended
	}
	c.beginProgress(r, token)
	return true
}

func createdToken(r *run) proto.Token {
	return proto.Token(fmt.Sprintf("%q", "confine-"+r.plan.id)) // an id holds nothing to escape
}

func (c *client) beginProgress(r *run, token proto.Token) {
	c.notify(proto.MethodProgress, proto.ProgressParams{Token: token, Value: proto.WorkDoneProgressBegin{
		Kind: proto.ProgressBegin, Title: "confine: running " + r.plan.id, Cancellable: true,
	}})
}

func (c *client) endProgress(token proto.Token) {
	c.notify(proto.MethodProgress, proto.ProgressParams{Token: token, Value: proto.WorkDoneProgressEnd{Kind: proto.ProgressEnd}})
}

// cancelProgress ends the run that the token belongs to.
func (c *client) cancelProgress(_ context.Context, req *rpc.Request) {
	var params proto.ProgressTokenParams
	if err := req.Decode(&params); err != nil || !hasToken(params.Token) {
		return
	}
	for _, r := range c.runs.all() {
		if sameToken(params.Token, r.plan.token) || sameToken(params.Token, createdToken(r)) {
			r.cancel()
		}
	}
}

// checkToken refuses what is no token: nothing could be shown under it.
func checkToken(t proto.Token) error {
	var text string
	var number int64
	if hasToken(t) && json.Unmarshal(t, &text) != nil && json.Unmarshal(t, &number) != nil {
		return invalid("workDoneToken must be a string or an integer")
	}
	return nil
}

func hasToken(t proto.Token) bool { return len(t) > 0 && string(t) != "null" }

// sameToken compares tokens as values: "a" and "\u0061" are the same.
func sameToken(a, b proto.Token) bool {
	if !hasToken(a) || !hasToken(b) {
		return false
	}
	if bytes.Equal(a, b) {
		return true
	}
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && scalar(x) && x == y
}

func scalar(v any) bool {
	switch v.(type) {
	case string, float64:
		return true
	}
	return false
}
