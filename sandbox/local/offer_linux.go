package local

import (
	"os"
	"strconv"
	"strings"
	"sync"
)

// badness is what a run adds to the kernel's reckoning of whom to end when memory
// runs out, in thousandths of the memory: a run goes before the editor does. It is
// a favour, not a limit; where it cannot be done it is left out.
const badness = 500

// badnessFile is this process's own oom_score_adj. Nil if it cannot be had.
var badnessFile *os.File

var openBadness = sync.OnceFunc(func() {
	badnessFile, _ = os.OpenFile("/proc/self/oom_score_adj", os.O_RDWR, 0)
})

// BeforeHardening opens what this process can open of its own only as long as it can
// be traced: after that (package harden) it does not own its files in /proc. An engine
// does the same for a process that is not hardened before.
func BeforeHardening() { openBadness() }

// offering makes this process one to be ended early and returns what takes that
// back. A child that is cloned in between keeps it. That lasts for a fraction of a
// millisecond, and nothing else is cloned meanwhile (syscall.ForkLock).
func offering() (done func()) {
	if badnessFile == nil {
		return func() {}
	}
	buffer := make([]byte, 16)
	n, _ := badnessFile.ReadAt(buffer, 0)
	before := strings.TrimSpace(string(buffer[:n]))
	if now, err := strconv.Atoi(before); err != nil || now >= badness {
		return func() {}
	}
	badnessFile.WriteAt([]byte(strconv.Itoa(badness)), 0)
	return func() { badnessFile.WriteAt([]byte(before), 0) }
}
