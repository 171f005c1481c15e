package observe

import (
	"bytes"
	"os"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// maxPath is the length of the longest path that the kernel takes, with the NUL
// at its end.
const maxPath = unix.PathMax

// readMemory reads up to len(into) bytes of a stopped task's memory at addr and
// reports how many. It is short only where memory ends.
//
// The task is named anew for each read: a descriptor of its memory would stay with
// the memory that the task had before it executed another program, and after vfork
// that is its parent's.
func readMemory(tid int, addr uint64, into []byte) (int, unix.Errno) {
	done := 0
	for done < len(into) {
		// Up to the end of the page, because the next may be missing.
		n := min(len(into)-done, pageSize-int((addr+uint64(done))%uint64(pageSize)))
		got, errno := readPage(tid, addr+uint64(done), into[done:done+n])
		if errno != 0 || got == 0 {
			switch {
			case done > 0:
				return done, 0
			case errno != 0:
				return 0, errno
			}
			return 0, unix.EFAULT
		}
		done += got
	}
	return done, 0
}

var pageSize = os.Getpagesize()

// readPage reads memory that does not cross a page.
func readPage(tid int, addr uint64, into []byte) (int, unix.Errno) {
	here := unix.Iovec{Base: &into[0], Len: uint64(len(into))}
	there := unix.RemoteIovec{Base: uintptr(addr), Len: len(into)}
	n, _, errno := unix.Syscall6(unix.SYS_PROCESS_VM_READV, uintptr(tid), uintptr(unsafe.Pointer(&here)), 1, uintptr(unsafe.Pointer(&there)), 1, 0)
	if errno == unix.ENOSYS {
		return readPageByFile(tid, addr, into)
	}
	if errno != 0 {
		return 0, errno
	}
	return int(n), 0
}

// readPageByFile does the same on kernels without process_vm_readv.
func readPageByFile(tid int, addr uint64, into []byte) (int, unix.Errno) {
	fd, err := unix.Open("/proc/"+strconv.Itoa(tid)+"/mem", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, errnoOf(err)
	}
	defer unix.Close(fd)
	n, err := unix.Pread(fd, into, int64(addr))
	if err != nil {
		return 0, errnoOf(err)
	}
	return n, 0
}

// firstRead is how much of a path is read at once; few are longer.
const firstRead = 256

// readText reads a text that ends with NUL into buffer, which holds the longest.
// What it returns ends before the NUL. ENAMETOOLONG is what the kernel will say,
// too.
func readText(tid int, addr uint64, buffer []byte) ([]byte, unix.Errno) {
	done := 0
	for done < len(buffer) {
		step := min(firstRead, len(buffer)-done)
		if done > 0 {
			step = len(buffer) - done
		}
		n, errno := readMemory(tid, addr+uint64(done), buffer[done:done+step])
		if end := bytes.IndexByte(buffer[done:done+n], 0); end >= 0 {
			return buffer[:done+end], 0
		}
		if errno != 0 {
			return nil, errno
		}
		if done += n; n < step {
			return nil, unix.EFAULT
		}
	}
	return nil, unix.ENAMETOOLONG
}

func errnoOf(err error) unix.Errno {
	if errno, ok := err.(unix.Errno); ok {
		return errno
	}
	return unix.EIO
}
