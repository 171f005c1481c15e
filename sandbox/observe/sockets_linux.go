package observe

import (
	"bufio"
	"encoding/hex"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// maxTable bounds how much of a table of sockets is read: a command can make many.
const maxTable = 4 << 20

// taskName is the folder of a task in /proc.
func taskName(tid int) string { return strconv.Itoa(tid) }

// eachSocket calls f with the fields of each line of a table below /proc/TASK/net
// until f is true, and reports whether it was.
func eachSocket(task, table string, f func(fields []string) bool) bool {
	file, err := os.Open("/proc/" + task + "/net/" + table)
	if err != nil {
		return false
	}
	defer file.Close()
	lines := bufio.NewScanner(io.LimitReader(&listing{file: file}, maxTable))
	lines.Buffer(make([]byte, 32<<10), bufio.MaxScanTokenSize)
	for lines.Scan() {
		if f(strings.Fields(lines.Text())) {
			return true
		}
	}
	return false
}

// listing reads what the kernel lists without asking once more whether that was all:
// for each answer about tcp it looks for all connections of the machine, which takes
// a millisecond.
type listing struct {
	file  io.Reader
	ended bool
}

// lastPiece bounds, in bytes, an answer to which another line could have been added:
// the kernel fills a page before it stops.
const lastPiece = 4096 - 256

func (l *listing) Read(p []byte) (n int, err error) {
	if l.ended {
		return 0, io.EOF
	}
	n, err = l.file.Read(p)
	l.ended = n < min(len(p), lastPiece)
	return n, err
}

// listens reports whether somebody in a task's network takes connections, or
// datagrams, at a loopback address.
func listens(task string, stream bool, to netip.AddrPort) bool {
	// Fields are: sl local remote state …
	tables, state := []string{"tcp", "tcp6"}, "0A"
	if !stream {
		tables, state = []string{"udp", "udp6"}, "07"
	}
	for _, table := range tables {
		if eachSocket(task, table, func(fields []string) bool {
			if len(fields) < 4 || fields[3] != state {
				return false
			}
			local, ok := parseSocket(fields[1])
			return ok && local.Port() == to.Port() && takes(local.Addr(), to.Addr())
		}) {
			return true
		}
	}
	return false
}

// takes reports whether a socket that is bound to one address gets what is sent to
// another.
func takes(bound, to netip.Addr) bool {
	if bound.IsUnspecified() {
		return bound.Is6() || to.Is4() // most sockets of IPv6 take both
	}
	return bound.Unmap() == to
}

// parseSocket reads ADDRESS:PORT in hexadecimal. The kernel prints addresses as
// numbers of 32 bits, which are turned round on little-endian machines.
func parseSocket(text string) (netip.AddrPort, bool) {
	address, port, _ := strings.Cut(text, ":")
	number, err := strconv.ParseUint(port, 16, 16)
	raw, bad := hex.DecodeString(address)
	if err != nil || bad != nil || len(raw)%4 != 0 {
		return netip.AddrPort{}, false
	}
	for i := 0; i < len(raw); i += 4 {
		raw[i], raw[i+1], raw[i+2], raw[i+3] = raw[i+3], raw[i+2], raw[i+1], raw[i]
	}
	ip, ok := netip.AddrFromSlice(raw)
	return netip.AddrPortFrom(ip, uint16(number)), ok
}

// Fields of /proc/net/unix: number, references, protocol, flags, type, state,
// inode, and a path if it is bound.
const (
	unixFlags = 3
	unixType  = 4
	unixPath  = 7

	acceptsFlag = "00010000" // a stream that listens
	datagram    = "0002"
)

// abstract is how the kernel prints an abstract name, with "@" in place of NUL.
func abstract(name string) string { return strings.ReplaceAll(name, "\x00", "@") }

// hasAbstract reports whether an abstract socket takes connections in a task's
// network. A name with spaces in it is not found.
func hasAbstract(task, name string) bool {
	return eachSocket(task, "unix", func(fields []string) bool {
		return serves(fields) && fields[unixPath] == name
	})
}

// isServed reports whether somebody on this host takes connections at a socket.
func isServed(socket *unix.Statx_t) bool {
	return eachSocket("self", "unix", func(fields []string) bool {
		if !serves(fields) || !filepath.IsAbs(fields[unixPath]) {
			return false
		}
		var st unix.Statx_t
		return unix.Statx(unix.AT_FDCWD, fields[unixPath], 0, statMask, &st) == nil && same(&st, socket)
	})
}

func serves(fields []string) bool {
	return len(fields) > unixPath && (fields[unixFlags] == acceptsFlag || fields[unixType] == datagram)
}

// printable is a name that can stand in a message: an abstract one may hold any
// byte.
func printable(name string) string {
	quoted := strconv.QuoteToASCII(name)
	return quoted[1 : len(quoted)-1]
}

// isStream reports whether a descriptor of a stopped task is a socket for
// connections and not for datagrams; ok is false if it is neither.
func isStream(tid, fd int) (stream, ok bool) {
	ids, errno := idsOf(tid)
	if errno != 0 {
		return false, false
	}
	process, err := unix.PidfdOpen(ids.outside, 0)
	if err != nil {
		return false, false
	}
	defer unix.Close(process)
	socket, err := unix.PidfdGetfd(process, fd, 0)
	if err != nil {
		return false, false
	}
	defer unix.Close(socket)
	kind, err := unix.GetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_TYPE)
	return kind == unix.SOCK_STREAM, err == nil && (kind == unix.SOCK_STREAM || kind == unix.SOCK_DGRAM)
}
