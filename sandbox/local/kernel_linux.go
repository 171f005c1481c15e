package local

import (
	"fmt"
	"sync"

	"golang.org/x/sys/unix"
)

// kernel says what an older kernel lacks of what every command needs, whatever
// confines it. What Landlock cannot do yet is in the claims of a wrapper.
type kernel struct {
	unfit        string // why no command can be started; empty if it can
	unobservable string // why no command can be observed; empty if it can
}

// thisKernel asks by calls that do nothing, since version numbers tell little
// where distributions port features back.
var thisKernel = sync.OnceValue(func() (k kernel) {
	// No descriptor has the highest number.
	if err := unix.CloseRange(^uint(0)>>32, ^uint(0)>>32, unix.CLOSE_RANGE_CLOEXEC); err == unix.EINVAL || err == unix.ENOSYS {
		k.unfit = fmt.Sprintf("confine needs Linux 5.11 or newer, and this is %s", release())
	}
	// The flags are looked at before the filter, which is missing here.
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, listenFlags, 0); errno == unix.EINVAL {
		k.unobservable = fmt.Sprintf("refused operations can be observed from Linux 5.19 on, and this is %s", release())
	}
	return k
})

// release is the version of the kernel, as it names itself.
func release() string {
	var name unix.Utsname
	if unix.Uname(&name) != nil {
		return "another one"
	}
	return unix.ByteSliceToString(name.Release[:])
}
