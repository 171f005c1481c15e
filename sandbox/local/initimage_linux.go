package local

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// initProgram is the machine code of the init (init_linux_*.s). Never call it.
func initProgram()

// initProgramStart is the address of initProgram's first instruction.
func initProgramStart() uintptr

var _ = initProgram // referred to from assembly only

// initEnd marks the end of initProgram.
const initEnd = "confine!"

// initCode is a copy of the init's instructions.
func initCode() ([]byte, error) {
	start := initProgramStart()
	const most = 4096
	code := unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&start))), most)
	for n := 0; n+len(initEnd) <= most; n++ {
		if string(code[n:n+len(initEnd)]) == initEnd {
			return bytes.Clone(code[:n]), nil
		}
	}
	return nil, errors.New("the init's code has no end mark")
}

// Numbers of the ELF format (elf(5)).
const (
	elfHeaderSize  = 64
	elfSegmentSize = 56
	elfLoadAddress = 0x400000
	elfAlignment   = 0x10000 // of the largest pages (arm64)
)

// ordersAddress is where an image holds its orders; init_linux_*.s knows it too.
const ordersAddress = 0x800000

var elfMachine = map[string]uint16{"amd64": 62, "arm64": 183}

// initImage wraps code and orders in the smallest static executable: one segment
// that is executed, one that is written.
func initImage(code []byte, machine uint16, orders []byte) []byte {
	const codeAt = elfHeaderSize + 3*elfSegmentSize
	size := uint64(codeAt + len(code))
	var b bytes.Buffer
	b.WriteString("\x7fELF\x02\x01\x01")
	b.Write(make([]byte, 9))
	put := func(values ...any) {
		for _, v := range values {
			binary.Write(&b, binary.LittleEndian, v) // a bytes.Buffer does not fail
		}
	}
	segment := func(kind, flags uint32, offset, address, size, alignment uint64) {
		put(kind, flags, offset, address, address, size, size, alignment)
	}
	put(uint16(2), machine, uint32(1))                                   // ET_EXEC, machine, EV_CURRENT
	put(uint64(elfLoadAddress+codeAt), uint64(elfHeaderSize), uint64(0)) // entry, segments, sections
	put(uint32(0), uint16(elfHeaderSize), uint16(elfSegmentSize))        // flags, sizes
	put(uint16(3), uint16(0), uint16(0), uint16(0))                      // segments, no sections
	segment(1, 5, 0, elfLoadAddress, size, elfAlignment)                 // PT_LOAD, R+X
	segment(1, 6, elfAlignment, ordersAddress, uint64(len(orders)), elfAlignment)
	segment(0x6474e551, 6, 0, 0, 0, 16) // PT_GNU_STACK, R+W
	b.Write(code)
	b.Write(make([]byte, elfAlignment-b.Len()))
	b.Write(orders)
	return b.Bytes()
}

// openInit returns a descriptor that executes the init with orders. It cannot be
// written any more, through it or any other.
func openInit(o orders) (*os.File, error) {
	code, err := initCode()
	if err != nil {
		return nil, err
	}
	machine, ok := elfMachine[runtime.GOARCH]
	if !ok {
		return nil, fmt.Errorf("no init for %s", runtime.GOARCH)
	}
	data, err := o.data(ordersAddress)
	if err != nil {
		return nil, fmt.Errorf("preparing the init's orders: %w", err)
	}
	const mfdExec = 0x10 // MFD_EXEC, since Linux 6.3 (memfd_create(2))
	fd, err := unix.MemfdCreate("confine-init", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|mfdExec)
	if err == unix.EINVAL {
		fd, err = unix.MemfdCreate("confine-init", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	}
	if err != nil {
		return nil, fmt.Errorf("making the init's memory file: %w", err)
	}
	file := os.NewFile(uintptr(fd), "confine-init")
	defer file.Close()
	if _, err := file.Write(initImage(code, machine, data)); err != nil {
		return nil, fmt.Errorf("writing the init's memory file: %w", err)
	}
	seals := unix.F_SEAL_WRITE | unix.F_SEAL_GROW | unix.F_SEAL_SHRINK | unix.F_SEAL_SEAL
	if _, err := unix.FcntlInt(file.Fd(), unix.F_ADD_SEALS, seals); err != nil {
		return nil, fmt.Errorf("sealing the init's memory file: %w", err)
	}
	// A descriptor open for writing makes execve answer ETXTBSY.
	exec, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", fd))
	if err != nil {
		return nil, fmt.Errorf("reopening the init's memory file: %w", err)
	}
	return exec, nil
}
