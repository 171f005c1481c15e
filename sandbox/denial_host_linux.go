package sandbox

import (
	"bufio"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// atEaccess makes faccessat ask for the effective user; package syscall does
// not name it.
const atEaccess = 0x200

// access asks the system whether this process has all the permissions in mode
// on a file, with groups, access lists and read-only mounts.
func access(path string, mode uint32) bool {
	const atFdcwd = -0x64
	return syscall.Faccessat(atFdcwd, path, mode, atEaccess) == nil
}

// listening reports whether somebody on this host accepts TCP connections to
// the port on a loopback or every address.
func listening(port string) bool {
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return false
	}
	suffix := ":" + strings.ToUpper(strconv.FormatUint(0x10000|n, 16)[1:])
	for _, table := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		file, err := os.Open(table)
		if err != nil {
			continue
		}
		found := false
		for lines := bufio.NewScanner(file); !found && lines.Scan(); {
			found = listensLocally(strings.Fields(lines.Text()), suffix)
		}
		_ = file.Close()
		if found {
			return true
		}
	}
	return false
}

// listensLocally reads one line of the table: sl local remote state …
func listensLocally(fields []string, suffix string) bool {
	const listen = "0A"
	if len(fields) < 4 || fields[3] != listen || !strings.HasSuffix(fields[1], suffix) {
		return false
	}
	switch addr := strings.TrimSuffix(fields[1], suffix); addr {
	case "00000000", "00000000000000000000000000000000", // every address
		"00000000000000000000000001000000", "0000000000000000FFFF00000100007F": // ::1, ::ffff:127.0.0.1
		return true
	default:
		return len(addr) == 8 && strings.HasSuffix(addr, "7F") // 127.0.0.0/8
	}
}
