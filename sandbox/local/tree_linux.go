package local

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// process is one line of the process table.
type process struct {
	pid, parent int
	start       uint64 // in clock ticks since boot; tells a reused pid apart
	zombie      bool
}

// processes reads the process table.
func processes() []process {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1) // a partial list is still worth walking
	var all []process
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			if p, ok := readProcess(pid); ok {
				all = append(all, p)
			}
		}
	}
	return all
}

// readProcess parses /proc/PID/stat (proc_pid_stat(5)).
func readProcess(pid int) (process, bool) {
	fd, err := unix.Open(fmt.Sprintf("/proc/%d/stat", pid), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return process{}, false
	}
	data := make([]byte, 512) // enough for the fields below
	n, err := unix.Read(fd, data)
	unix.Close(fd)
	if err != nil {
		return process{}, false
	}
	data = data[:n]
	i := bytes.LastIndexByte(data, ')') // the name may hold anything
	if i < 0 {
		return process{}, false
	}
	fields := strings.Fields(string(data[i+1:]))
	if len(fields) < 20 {
		return process{}, false
	}
	parent, _ := strconv.Atoi(fields[1])
	start, _ := strconv.ParseUint(fields[19], 10, 64)
	return process{pid: pid, parent: parent, start: start, zombie: fields[0] == "Z"}, true
}

// descendants lists what lives below the given processes, not them.
func descendants(all []process, roots ...int) []process {
	below := map[int]bool{}
	for _, r := range roots {
		below[r] = true
	}
	var found []process
	for grown := true; grown; {
		grown = false
		for _, p := range all {
			if below[p.parent] && !below[p.pid] {
				below[p.pid], grown = true, true
				if !p.zombie {
					found = append(found, p)
				}
			}
		}
	}
	return found
}

// kill ends exactly the process that was read, not one that got its number. It
// reports whether that process has ended or must end now.
func (p process) kill() bool {
	fd, err := unix.PidfdOpen(p.pid, 0)
	if err != nil {
		return err == unix.ESRCH // or there are too many descriptors
	}
	defer unix.Close(fd)
	now, ok := readProcess(p.pid)
	if !ok {
		return false
	}
	if now.start != p.start {
		return true
	}
	err = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
	return err == nil || err == unix.ESRCH
}

// hunted remembers what was killed and may need a while to be gone.
type hunted map[identity]struct{}

// identity tells a process from all others since boot.
type identity struct {
	pid   int
	start uint64
}

// kill ends those that were not killed before. It reports whether there were any.
func (h hunted) kill(all []process) (some bool) {
	for _, p := range all {
		id := identity{p.pid, p.start}
		if _, before := h[id]; before {
			continue
		}
		some = true
		if p.kill() {
			h[id] = struct{}{}
		}
	}
	return some
}

// initName is argv[1] of a run's init. Its first part is read by the init
// itself (init_linux_amd64.s).
func initName(flags int, server string) string {
	return fmt.Sprintf("confine-init:%c:%s", 'a'+flags, server)
}

// parseInitName reads the flags out of an init's name, if it is of a server.
func parseInitName(name, server string) (flags int, ok bool) {
	rest, isInit := strings.CutPrefix(name, "confine-init:")
	letter, of, found := strings.Cut(rest, ":")
	if !isInit || !found || len(letter) != 1 || of != server {
		return 0, false
	}
	return int(letter[0]) - 'a', true
}

// Flags of an init.
const (
	initLandlock = 1 // restrict the command with the ruleset in descriptor 4
	initTree     = 2 // no PID namespace: adopt orphans, stay until none is left
	initTerminal = 4 // standard input becomes the command's controlling terminal
)

// initsOf finds the inits that a server started.
func initsOf(all []process, server string) (inits []process, trees map[int]bool) {
	trees = map[int]bool{}
	for _, p := range all {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.pid))
		if err != nil {
			continue
		}
		_, line, _ = bytes.Cut(line, []byte{0})
		name, _, _ := bytes.Cut(line, []byte{0})
		if flags, ok := parseInitName(string(name), server); ok {
			inits = append(inits, p)
			trees[p.pid] = flags&initTree != 0
		}
	}
	return inits, trees
}

// endRuns ends every run that a dead server left, for at most limit.
func endRuns(server string, limit time.Duration) bool {
	for end := time.Now().Add(limit); ; {
		all := processes()
		inits, trees := initsOf(all, server)
		if len(inits) == 0 {
			return true
		}
		over := time.Now().After(end)
		for _, init := range inits {
			for _, p := range descendants(all, init.pid) {
				p.kill()
			}
			// The init of a tree adopts what its children leave and ends by
			// itself when nothing is left.
			if over || !trees[init.pid] {
				init.kill()
			}
		}
		if over {
			return false
		}
		time.Sleep(2 * time.Millisecond) // polling: the kernel tells nobody of a grandchild's end
	}
}
