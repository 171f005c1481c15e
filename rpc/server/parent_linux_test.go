package server_test

import (
	"os/exec"
	"testing"

	"github.com/confine-dev/confine/rpc/proto"
	"github.com/confine-dev/confine/rpc/rpctest"
)

// These two start processes, which a bubble cannot wait for.

func TestTheServerEndsWithTheEditorsProcess(t *testing.T) {
	editor := exec.Command("cat") // ends when its input does
	stdin, err := editor.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := editor.Start(); err != nil {
		t.Fatal(err)
	}
	defer editor.Wait()
	w := newWorld(t, nil)
	w.editor.Patience = rpctest.DefaultPatience
	init := full(w.folder)
	pid := int64(editor.Process.Pid)
	init.ProcessID = &pid
	w.editor.Initialize(init)
	w.editor.Call(proto.MethodRunCommand, proto.RunCommandParams{Command: "sleep", Background: true}, nil)
	stdin.Close()
	w.editor.AwaitEnd()
	<-w.served
	if r, _ := w.next(w.confined).Wait(); !r.Cancelled {
		t.Errorf("the command was not ended: %+v", r)
	}
}

func TestAnEditorsProcessThatIsNotHereIsIgnored(t *testing.T) {
	gone := exec.Command("true")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	for _, pid := range []int64{int64(gone.Process.Pid), 0, -1, 1 << 40} {
		w := newWorld(t, nil)
		w.editor.Patience = rpctest.DefaultPatience
		init := full(w.folder)
		init.ProcessID = &pid
		w.editor.Initialize(init)
		w.confined.Script("true", exit0)
		w.run(proto.RunCommandParams{Command: "true"})
		w.editor.Shutdown()
	}
}
