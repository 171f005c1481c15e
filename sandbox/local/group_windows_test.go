package local_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/local"
	"golang.org/x/sys/windows"
)

func init() {
	testEntries["__wait"] = func([]string) int { time.Sleep(time.Hour); return 0 }
	testEntries["__parent"] = parentMain
}

// parentMain starts a child, says which, and waits or, if told to, ends.
func parentMain(args []string) int {
	child := exec.Command(os.Args[0], "__wait")
	if err := child.Start(); err != nil {
		return 2
	}
	fmt.Println(child.Process.Pid)
	if len(args) > 0 {
		return 0
	}
	time.Sleep(time.Hour)
	return 0
}

// startParent runs parentMain unconfined and returns a handle of its child.
func startParent(t *testing.T, args ...string) (sandbox.Process, windows.Handle) {
	t.Helper()
	engine, err := local.New(nil, local.Options{StateDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { engine.Close() })
	said := make(chan string, 16)
	process, err := engine.Unconfined().Start(t.Context(), sandbox.Spec{RunID: "r", Argv: append([]string{os.Args[0], "__parent"}, args...), Dir: t.TempDir(), Env: os.Environ(),
		Policy: sandbox.Policy{Mode: sandbox.DangerFullAccess}, Output: func(c sandbox.Chunk) { said <- string(c.Data) }})
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(<-said))
	if err != nil {
		t.Fatal(err)
	}
	child, err := windows.OpenProcess(windows.SYNCHRONIZE, false, uint32(pid))
	if errors.Is(err, windows.ERROR_INVALID_PARAMETER) && len(args) > 0 {
		return process, 0 // it is gone already
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { windows.CloseHandle(child) })
	return process, child
}

func ended(t *testing.T, child windows.Handle) {
	t.Helper()
	if child == 0 {
		return
	}
	if event, err := windows.WaitForSingleObject(child, 30000); event != windows.WAIT_OBJECT_0 {
		t.Errorf("what the command started is left: %v, %v", event, err)
	}
}

func TestJobEndsWithTheCommand(t *testing.T) {
	process, child := startParent(t, "end")
	if result, err := process.Wait(); err != nil || result.ExitCode != 0 {
		t.Errorf("the result is %+v, %v", result, err)
	}
	ended(t, child)
}

func TestCancelEndsTheJob(t *testing.T) {
	process, child := startParent(t)
	process.Cancel()
	if result, err := process.Wait(); err != nil || !result.Cancelled {
		t.Errorf("the result is %+v, %v", result, err)
	}
	ended(t, child)
}
