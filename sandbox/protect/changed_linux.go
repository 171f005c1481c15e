package protect

import (
	"os"
	"syscall"
)

// changeTime is a time that commands cannot set, in nanoseconds.
func changeTime(info os.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Ctim.Nano()
	}
	return 0
}
