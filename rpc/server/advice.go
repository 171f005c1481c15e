package server

import (
	"fmt"
	"strings"

	"github.com/confine-dev/confine/rpc/proto"
	"github.com/confine-dev/confine/sandbox"
)

// advise finds what would let an ended command do what it was refused. It looks
// at the host's files as they are then.
func (c *client) advise(p plan, result sandbox.Result) sandbox.Advice {
	roots := c.roots(p.settings)
	var wider []sandbox.Policy
	for _, mode := range p.want.Mode.WiderModes() {
		if mode == sandbox.WorkspaceWrite && len(roots) == 0 {
			continue
		}
		wider = append(wider, c.policy(p.settings, scope{mode: mode, network: p.want.Network}, roots))
	}
	return sandbox.Advise(sandbox.AdviceContext{
		Policy: p.want, Wider: wider, Host: sandbox.SystemHost(c.o.Forbidden),
	}, result.Denials)
}

// escalationHint is given only where asking can help: something was denied,
// something would allow it, and somebody can be asked.
func (c *client) escalationHint(f facts) *proto.EscalationHint {
	if f.ending == nil || !f.ending.result.Denied || !c.canAsk() {
		return nil
	}
	hint := &proto.EscalationHint{Targets: orEmpty(f.ending.advice.Modes)}
	if a := f.ending.advice.Additional; a != nil {
		hint.Additional = &proto.Additional{Write: a.Write, Read: a.Read, Network: a.Network}
	}
	if len(hint.Targets) == 0 && hint.Additional == nil {
		return nil
	}
	return hint
}

// lessWouldDo tells the person, when a whole mode is asked for, that less was
// refused.
func lessWouldDo(e *ending) []string {
	a := e.advice.Additional
	if a == nil {
		return nil
	}
	var parts []string
	for _, list := range []struct {
		verb  string
		paths []string
	}{{"writing", a.Write}, {"reading", a.Read}} {
		switch n := len(list.paths); n {
		case 0:
		case 1:
			parts = append(parts, list.verb+" "+list.paths[0])
		default:
			parts = append(parts, fmt.Sprintf("%s %s and %d more", list.verb, list.paths[0], n-1))
		}
	}
	if a.Network {
		parts = append(parts, "the network")
	}
	return []string{"Less than this mode was refused and can be asked for by itself: " + strings.Join(parts, ", ") + "."}
}
