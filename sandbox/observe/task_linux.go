package observe

import (
	"bufio"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ids are the numbers of a task in its own PID namespace.
type ids struct {
	process int // of its thread group
	task    int
	outside int // of its thread group, as we number it
}

// idsOf reads them.
func idsOf(tid int) (ids, unix.Errno) {
	file, err := os.Open("/proc/" + strconv.Itoa(tid) + "/status")
	if err != nil {
		return ids{}, unix.ESRCH
	}
	defer file.Close()
	var found ids
	for lines := bufio.NewScanner(file); lines.Scan(); {
		label, values, _ := strings.Cut(lines.Text(), ":")
		fields := strings.Fields(values)
		if len(fields) == 0 {
			continue
		}
		switch innermost, _ := strconv.Atoi(fields[len(fields)-1]); label {
		case "Tgid":
			found.outside = innermost
		case "NStgid":
			found.process = innermost
		case "NSpid":
			found.task = innermost
			return found, 0
		}
	}
	return ids{}, unix.ESRCH
}

// programOf is the name of the program that a task executes.
func programOf(tid int) string {
	target, err := os.Readlink("/proc/" + strconv.Itoa(tid) + "/exe")
	if err != nil {
		return ""
	}
	program := path.Base(strings.TrimSuffix(target, " (deleted)"))
	return program[:min(len(program), unix.PathMax)]
}
