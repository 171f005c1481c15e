package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/confine-dev/confine/rpc"
	"github.com/confine-dev/confine/rpc/proto"
	"github.com/confine-dev/confine/rpc/server"
)

// client is the command line's connection to a server in this process. It is
// an ordinary editor to that server: the same messages, the same rules.
type client struct {
	conn    *rpc.Conn
	refused []proto.RefusedURI // the workspace folder, if it cannot be written to

	cancel context.CancelFunc
	ended  chan struct{} // closed when both ends have returned
}

// clientOptions says what the client announces and handles.
type clientOptions struct {
	folder string // workspace folder; empty for none

	// ask answers a question; nil means that nobody can be asked. Its context
	// ends when the question is withdrawn.
	ask func(context.Context, proto.Question) proto.ApprovalAnswer
}

// maxResult is the length of the longest result, in bytes: two streams, each
// also in the text for a model, every byte escaped as \u0000, and the rest.
const maxResult = 2*2*6*jsonOutput + 1<<20

// connect starts a server in this process and greets it. Close the client.
func connect(ctx context.Context, srv *server.Server, o clientOptions) (*client, error) {
	ctx, cancel := context.WithCancel(ctx)
	ours, theirs := net.Pipe()
	c := &client{cancel: cancel, ended: make(chan struct{})}
	c.conn = rpc.NewConn(ours, rpc.Options{Requests: o.requests(), MaxMessage: maxResult})
	served := make(chan struct{})
	go func() {
		defer close(served)
		srv.Serve(ctx, theirs) // how it ended is known from the answers
	}()
	go func() {
		defer close(c.ended)
		c.conn.Serve(ctx)
		<-served
	}()
	if err := c.greet(ctx, o); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

func (o clientOptions) requests() map[string]rpc.Handler {
	if o.ask == nil {
		return map[string]rpc.Handler{
			proto.MethodShowMessageRequest: func(context.Context, *rpc.Request) (any, error) {
				return nil, rpc.Errorf(proto.CodeRequestFailed, "nobody can be asked without a terminal on standard input and standard error, nor with --json")
			},
		}
	}
	return map[string]rpc.Handler{
		proto.MethodRequestApproval: func(ctx context.Context, req *rpc.Request) (any, error) {
			var question proto.Question
			if err := req.Decode(&question); err != nil {
				return nil, err
			}
			return o.ask(ctx, question), nil
		},
	}
}

// greet goes through the opening of the protocol.
func (c *client) greet(ctx context.Context, o clientOptions) error {
	experimental, err := json.Marshal(proto.ClientExperimental{Confine: &proto.ClientConfine{
		ProtocolVersion: proto.ProtocolVersion,
		Approval:        o.ask != nil,
	}})
	if err != nil {
		return fmt.Errorf("encoding what the command line can do: %w", err)
	}
	// No processId: the server is in this very process.
	params := proto.InitializeParams{Capabilities: proto.ClientCapabilities{Experimental: experimental}}
	if o.folder != "" {
		params.WorkspaceFolders = []proto.WorkspaceFolder{{URI: fileURI(o.folder), Name: filepath.Base(o.folder)}}
	}
	var greeting struct {
		Capabilities struct {
			Experimental proto.ServerExperimental `json:"experimental"`
		} `json:"capabilities"`
	}
	if err := c.conn.Call(ctx, proto.MethodInitialize, params, &greeting); err != nil {
		return fmt.Errorf("starting the server: %w", err)
	}
	c.refused = greeting.Capabilities.Experimental.Confine.RefusedRoots
	return c.conn.Notify(proto.MethodInitialized, struct{}{}, nil)
}

// close ends the connection in order and waits for both ends.
func (c *client) close() {
	if err := c.conn.Call(context.Background(), proto.MethodShutdown, nil, nil); err == nil {
		c.conn.Notify(proto.MethodExit, nil, nil)
	}
	c.cancel()
	<-c.ended
}

// fileURI is the URI of an absolute path.
func fileURI(path string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") { // C:/work
		path = "/" + path
	}
	return (&url.URL{Scheme: "file", Path: path}).String()
}
