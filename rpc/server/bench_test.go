package server_test

import (
	"context"
	"net"
	"testing"

	"github.com/confine-dev/confine/approval"
	"github.com/confine-dev/confine/rpc/proto"
	"github.com/confine-dev/confine/rpc/rpctest"
	"github.com/confine-dev/confine/rpc/server"
	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/sandboxtest"
)

// benchmark runs one command again and again, on a provider that costs nothing.
func benchmark(b *testing.B, play func(*rpctest.Editor, *sandboxtest.FakeProcess)) {
	gate, err := approval.New(approval.Options{Audit: approval.NoAudit()})
	if err != nil {
		b.Fatal(err)
	}
	fake := sandboxtest.NewFake(sandbox.ProviderLandlock)
	s := server.New(server.Options{Settings: server.Settings{Confined: fake}, Unconfined: sandboxtest.NewFake(sandbox.ProviderNone), Gate: gate})
	ours, theirs := net.Pipe()
	served := make(chan error, 1)
	go func() {
		_, err := s.Serve(context.Background(), theirs)
		served <- err
	}()
	editor := rpctest.Open(b, ours)
	editor.Initialize(rpctest.Init{Confine: &proto.ClientConfine{ProtocolVersion: 1, Output: true}})
	fake.Script("x", func(p *sandboxtest.FakeProcess) { play(editor, p) })
	for b.Loop() {
		editor.Call(proto.MethodRunCommand, proto.RunCommandParams{Command: "x"}, nil)
	}
	editor.Shutdown()
	if err := <-served; err != nil {
		b.Error(err)
	}
}

// BenchmarkRun is what the server and the wire add to a run.
func BenchmarkRun(b *testing.B) {
	benchmark(b, func(_ *rpctest.Editor, p *sandboxtest.FakeProcess) { p.Exit(0) })
}

// BenchmarkOutput is what they add to a run that prints 64 MiB, for an editor
// that reads and for one that reads nothing until the end.
func BenchmarkOutput(b *testing.B) {
	const chunks = 1 << 10
	chunk := make([]byte, 64<<10)
	for i := range chunk {
		chunk[i] = "0123456789abcdef\n"[i%17]
	}
	flood := func(p *sandboxtest.FakeProcess) {
		for range chunks {
			p.Spec.Output(sandbox.Chunk{Stream: sandbox.StdoutStream, Data: chunk})
		}
		p.Exit(0)
	}
	b.Run("reading", func(b *testing.B) {
		b.SetBytes(chunks * int64(len(chunk)))
		benchmark(b, func(_ *rpctest.Editor, p *sandboxtest.FakeProcess) { flood(p) })
	})
	b.Run("stalled", func(b *testing.B) {
		b.SetBytes(chunks * int64(len(chunk)))
		benchmark(b, func(e *rpctest.Editor, p *sandboxtest.FakeProcess) { e.Stall(); flood(p); e.Resume() })
	})
}
