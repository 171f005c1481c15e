package server

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/confine-dev/confine/rpc"
	"github.com/confine-dev/confine/rpc/proto"
)

// state is where a connection is in the lifecycle of LSP.
type state string

const (
	stateCreated      state = "created"
	stateInitializing state = "initializing"
	stateRunning      state = "running"
	stateShutDown     state = "shut down"
)

// lifecycle says which messages are welcome.
type lifecycle struct {
	ready chan struct{} // closed by the initialized notification

	mu    sync.Mutex // guards state
	state state
	once  sync.Once // closes ready
}

func newLifecycle() *lifecycle {
	return &lifecycle{ready: make(chan struct{}), state: stateCreated}
}

func (l *lifecycle) set(s state) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state != stateShutDown { // nothing follows
		l.state = s
	}
}

func (l *lifecycle) wasShutDown() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state == stateShutDown
}

// admit runs on the read loop, before every message.
func (c *client) admit(method string, isRequest bool) error {
	l := c.life
	l.mu.Lock()
	defer l.mu.Unlock()
	if !isRequest {
		if method == proto.MethodExit || l.state == stateRunning {
			return nil
		}
		return rpc.Errorf(proto.CodeInvalidRequest, "the server is %s", l.state)
	}
	switch {
	case l.state == stateShutDown:
		return rpc.Errorf(proto.CodeInvalidRequest, "the server is shut down: send exit")
	case method == proto.MethodInitialize && l.state == stateCreated:
		l.state = stateInitializing
		return nil
	case method == proto.MethodInitialize:
		return rpc.Errorf(proto.CodeInvalidRequest, "initialize may be sent once only")
	case l.state != stateRunning:
		return rpc.Errorf(proto.CodeNotInitialized, "the server is not initialized: send initialize first and wait for the answer")
	case method == proto.MethodShutdown: // here, since an exit may follow at once
		l.state = stateShutDown
	}
	return nil
}

func (c *client) initialize(_ context.Context, req *rpc.Request) (any, error) {
	var params proto.InitializeParams
	if err := req.Decode(&params); err != nil {
		c.life.set(stateCreated) // it may be sent again, corrected
		return nil, err
	}
	c.offer = readOffer(params.Capabilities)
	c.folders.declare(announcedFolders(params))
	c.config.SetOptions(params.InitializationOptions)
	c.config.SetFolders(c.folders.paths())
	if params.ProcessID != nil {
		c.watchEditor(*params.ProcessID)
	}
	c.probe()
	c.working.Go(c.followSettings)
	c.life.set(stateRunning)
	return c.greeting(), nil
}

// readOffer never fails: other extensions put anything into experimental, and
// an announcement that cannot be read is none.
func readOffer(capabilities proto.ClientCapabilities) offer {
	var o offer
	if w := capabilities.Window; w != nil {
		o.progress = w.WorkDoneProgress
	}
	var experimental map[string]json.RawMessage
	var confine proto.ClientConfine
	if json.Unmarshal(capabilities.Experimental, &experimental) == nil &&
		json.Unmarshal(experimental["confine"], &confine) == nil && confine.ProtocolVersion >= 1 {
		o.confine = &confine
	}
	return o
}

func announcedFolders(params proto.InitializeParams) []string {
	var uris []string
	for _, folder := range params.WorkspaceFolders {
		uris = append(uris, folder.URI)
	}
	if len(uris) == 0 && params.RootURI != "" {
		uris = append(uris, params.RootURI)
	}
	return uris
}

func (c *client) greeting() proto.InitializeResult {
	version := proto.ProtocolVersion
	if c.announced() {
		version = min(version, c.offer.confine.ProtocolVersion)
	}
	return proto.InitializeResult{
		Capabilities: proto.ServerCapabilities{
			ExecuteCommandProvider: &proto.ExecuteCommandOptions{Commands: proto.ServerCommands},
			Workspace: &proto.WorkspaceCapabilities{WorkspaceFolders: &proto.WorkspaceFoldersCapabilities{
				Supported: true, ChangeNotifications: true,
			}},
			Experimental: proto.ServerExperimental{Confine: proto.ServerConfine{
				ProtocolVersion: version,
				State:           proto.StateProbing,
				RefusedRoots:    c.folders.refusals(),
			}},
		},
		ServerInfo: &proto.ServerInfo{Name: "confine", Version: c.o.Version},
	}
}

// initialized says that the editor is ready for messages of the server.
func (c *client) initialized(context.Context, *rpc.Request) {
	c.life.once.Do(func() { close(c.life.ready) })
	for _, refused := range c.folders.refusals() {
		c.warnRefusedRoot(refused)
	}
}

// shutdown ends every run; exit, or the end of the stream, ends the rest.
func (c *client) shutdown(ctx context.Context, _ *rpc.Request) (any, error) {
	for _, r := range c.runs.close() {
		select {
		case <-r.done:
		case <-ctx.Done(): // the editor does not want to wait; the runs end all the same
			return nil, nil
		}
	}
	return nil, nil
}

func (c *client) exit(context.Context, *rpc.Request) {
	c.cancel()
	c.conn.Close() // waits for nothing; Serve does
}
