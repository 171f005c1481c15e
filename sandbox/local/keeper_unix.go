//go:build unix

package local

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
)

// keeper is a process that ends what runs, and removes the server's folder, when the
// server ends without having done so. It waits on a pipe of which only the server has
// the other end, and knows process groups by what was written there. It stands where
// the guardian does on Linux, which knows descendants as well.
type keeper struct {
	self string // path of this program
	dir  string // removed at the end

	mu     sync.Mutex
	groups map[int]bool // guarded by mu: that run
	cmd    *exec.Cmd    // guarded by mu; nil until something ran
	pipe   *os.File     // guarded by mu
}

// keeperName is the hidden subcommand.
const keeperName = "__keeper"

func newKeeper(self, dir string) *keeper {
	return &keeper{self: self, dir: dir, groups: map[int]bool{}}
}

// add makes sure that a group ends with the server. A keeper that was killed is
// started again.
func (k *keeper) add(group int) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.groups[group] = true
	if k.cmd != nil && k.tell('+', group) == nil {
		return nil
	}
	k.stop()
	if err := k.start(); err != nil {
		return fmt.Errorf("starting the process that cleans up after confine: %w", err)
	}
	for g := range k.groups {
		if err := k.tell('+', g); err != nil {
			return fmt.Errorf("telling the process that cleans up after confine: %w", err)
		}
	}
	return nil
}

// remove forgets a group that ended.
func (k *keeper) remove(group int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.groups, group)
	if k.cmd != nil {
		_ = k.tell('-', group) // a keeper that is gone knows of none
	}
}

// tell is called with mu held.
func (k *keeper) tell(what byte, group int) error {
	_, err := fmt.Fprintf(k.pipe, "%c%d\n", what, group)
	return err
}

// start is called with mu held.
func (k *keeper) start() error {
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer read.Close()
	cmd := &exec.Cmd{Path: k.self, Args: []string{k.self, keeperName, k.dir}, Env: []string{}, Dir: "/",
		ExtraFiles: []*os.File{read}, SysProcAttr: &syscall.SysProcAttr{Setsid: true}}
	if err := cmd.Start(); err != nil {
		write.Close()
		return err
	}
	k.cmd, k.pipe = cmd, write
	return nil
}

// stop is called with mu held, or by nobody else. It waits until the keeper has ended
// what it knows and removed the folder.
func (k *keeper) stop() {
	if k.cmd == nil {
		return
	}
	k.pipe.Close()
	k.cmd.Wait()
	k.cmd = nil
}

// close ends the keeper, and what it was told of and is not removed.
func (k *keeper) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stop()
}

// keep is the keeper's main function.
func keep(args []string) int {
	if len(args) != 1 {
		return 2
	}
	groups := map[int]bool{}
	lines := bufio.NewScanner(os.NewFile(3, "server"))
	for lines.Scan() {
		line := lines.Text()
		group, err := strconv.Atoi(line[min(1, len(line)):])
		switch {
		case err != nil || group <= 1:
			return 1 // nobody but a server of ours writes here
		case line[0] == '+':
			groups[group] = true
		default:
			delete(groups, group)
		}
	}
	for group := range groups {
		syscall.Kill(-group, syscall.SIGKILL)
	}
	if removeTree(args[0]) != nil {
		return 1
	}
	return 0
}
