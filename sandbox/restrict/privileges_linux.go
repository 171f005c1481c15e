package restrict

import (
	"encoding/binary"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/confine-dev/confine/sandbox/local"
	"golang.org/x/sys/unix"
)

// RootKeeps are the capabilities that root's commands keep inside the view, so
// that files of other owners work as root is used to. The view is all they
// reach.
var RootKeeps = []int{unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_FSETID}

// DropPrivileges adds the calls that take every capability save those of keep
// (CAP_…) away, for good. What was not there before is not given.
func DropPrivileges(s *local.Script, keep []int) {
	const what = "dropping privileges"
	s.Call(what, unix.SYS_PRCTL, local.Int(unix.PR_SET_NO_NEW_PRIVS), local.Int(1), local.Int(0), local.Int(0), local.Int(0))
	var mask uint64
	for _, c := range keep {
		mask |= 1 << c
	}
	for c := range lastCapability() + 1 {
		if mask&(1<<c) == 0 {
			s.Call(what, unix.SYS_PRCTL, local.Int(unix.PR_CAPBSET_DROP), local.Int(c), local.Int(0), local.Int(0), local.Int(0))
			// A process without CAP_SETPCAP cannot; no_new_privs and the empty
			// permitted set below keep it from gaining anything all the same.
			s.Ignore(unix.EPERM)
		}
	}
	s.Call(what, unix.SYS_PRCTL, local.Int(unix.PR_CAP_AMBIENT), local.Int(unix.PR_CAP_AMBIENT_CLEAR_ALL), local.Int(0), local.Int(0), local.Int(0))
	header := binary.NativeEndian.AppendUint32(nil, unix.LINUX_CAPABILITY_VERSION_3)
	header = binary.NativeEndian.AppendUint32(header, 0)
	var data []byte
	for _, half := range []uint32{uint32(mask), uint32(mask >> 32)} {
		data = binary.NativeEndian.AppendUint32(data, half) // effective
		data = binary.NativeEndian.AppendUint32(data, half) // permitted
		data = binary.NativeEndian.AppendUint32(data, 0)    // inheritable
	}
	s.Call(what, unix.SYS_CAPSET, local.Bytes(header), local.Bytes(data))
}

// lastCapability is the highest capability that the kernel knows. It is asked
// once, not for each run.
var lastCapability = sync.OnceValue(func() int {
	data, err := os.ReadFile("/proc/sys/kernel/cap_last_cap")
	if err == nil {
		if n, err := strconv.Atoi(strings.TrimSpace(string(data))); err == nil && n > 0 && n < 64 {
			return n
		}
	}
	return 40 // CAP_CHECKPOINT_RESTORE, the last one of Linux 6
})
