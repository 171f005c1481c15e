package server

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/confine-dev/confine/approval"
	"github.com/confine-dev/confine/rpc"
	"github.com/confine-dev/confine/rpc/proto"
	"github.com/confine-dev/confine/sandbox"
)

// client is the editor at the other end and everything that belongs to it.
type client struct {
	o    Options
	id   string // random: the default session, and the beginning of the others
	conn *rpc.Conn

	ctx     context.Context // ends with the connection
	cancel  context.CancelFunc
	working sync.WaitGroup // goroutines that are no request of the editor

	config Configuration
	news   chan struct{} // has one element while a change of the settings is to be told

	life     *lifecycle
	offer    offer // written by initialize, read after it
	folders  *folders
	runs     *registry
	sessions *sessions
	probing  *probing

	usedMu sync.Mutex                // guards used
	used   map[sandbox.Provider]bool // whatever confined commands of this connection; the settings may name others by now

	// mute is set when the editor answered that it knows no way to ask.
	mute atomic.Bool
}

// offer is what the editor announced.
type offer struct {
	confine  *proto.ClientConfine // nil for a stock client
	progress bool                 // it shows progress that the server creates
}

func newClient(ctx context.Context, o Options, cancel context.CancelFunc) *client {
	c := &client{
		o:        o,
		news:     make(chan struct{}, 1),
		id:       rand.Text(),
		ctx:      ctx,
		cancel:   cancel,
		life:     newLifecycle(),
		folders:  &folders{forbidden: o.Forbidden},
		runs:     newRegistry(),
		sessions: &sessions{},
		probing:  newProbing(),
		used:     map[sandbox.Provider]bool{},
	}
	c.config = o.configure(c.settingsChanged)
	return c
}

// end ends what the connection started, and waits for it.
func (c *client) end() {
	c.cancel()
	c.working.Wait()
	for _, session := range c.sessions.all() {
		c.endSession(session)
	}
	c.folders.close()
	c.config.Close()
}

func (c *client) endSession(session string) {
	c.usedMu.Lock()
	defer c.usedMu.Unlock()
	for provider := range c.used {
		provider.CloseSession(session)
	}
	c.o.Unconfined.CloseSession(session)
	c.o.Gate.EndSession(session)
}

// note remembers what the connection's sessions may be in.
func (c *client) note(provider sandbox.Provider) {
	c.usedMu.Lock()
	defer c.usedMu.Unlock()
	c.used[provider] = true
}

// announced reports whether the editor speaks the confine part of the protocol.
func (c *client) announced() bool { return c.offer.confine != nil }

// canAsk reports whether somebody can be asked for more than is configured.
func (c *client) canAsk() bool {
	return c.settings().ApprovalPolicy != approval.PolicyNever && !c.mute.Load()
}

// notify sends a notification; the log says if it could not. A client that is
// gone misses nothing.
func (c *client) notify(method string, params any) {
	if err := c.conn.Notify(method, params, nil); err != nil && !errors.Is(err, rpc.ErrClosed) {
		c.o.Log.Warn("leaving a notification out", "method", method, "reason", err)
	}
}

// maxSessions is how many sessions a connection can have. They end with it.
const maxSessions = 1024

// sessions are the sessions that this connection used.
type sessions struct {
	mu   sync.Mutex // guards keys
	keys map[string]bool
}

func (s *sessions) add(key string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.keys == nil {
		s.keys = map[string]bool{}
	}
	if !s.keys[key] && len(s.keys) >= maxSessions {
		return limitReached(proto.FailureTooManySessions, "too many sessions on this connection: use one of the earlier ones")
	}
	s.keys[key] = true
	return nil
}

func (s *sessions) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var keys []string
	for key := range s.keys {
		keys = append(keys, key)
	}
	return keys
}
