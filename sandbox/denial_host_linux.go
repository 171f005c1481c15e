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

// listeningPorts are the ports on which somebody on this host accepts TCP
// connections to a loopback address or to every address.
func listeningPorts() map[string]bool {
	ports := map[string]bool{}
	for _, table := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		file, err := os.Open(table)
		if err != nil {
			continue
		}
		for lines := bufio.NewScanner(file); lines.Scan(); {
			if port, ok := localListener(strings.Fields(lines.Text())); ok {
				ports[port] = true
			}
		}
		_ = file.Close()
	}
	return ports
}

// localListener reads one line of such a table: sl local remote state …, with
// local as address:port in hexadecimal.
func localListener(fields []string) (port string, ok bool) {
	const listen = "0A"
	if len(fields) < 4 || fields[3] != listen {
		return "", false
	}
	addr, hex, _ := strings.Cut(fields[1], ":")
	n, err := strconv.ParseUint(hex, 16, 16)
	if err != nil {
		return "", false
	}
	port = strconv.FormatUint(n, 10)
	switch addr {
	case "00000000", "00000000000000000000000000000000", // every address
		"00000000000000000000000001000000", "0000000000000000FFFF00000100007F": // ::1, ::ffff:127.0.0.1
		return port, true
	}
	return port, len(addr) == 8 && strings.HasSuffix(addr, "7F") // 127.0.0.0/8
}
