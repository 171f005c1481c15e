package local

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/confine-dev/confine/sandbox"
	"golang.org/x/sys/unix"
)

// prober collects what the probing child, itself confined, found. A check's
// name begins with the facet it speaks of, or "control" for what must work.
type prober struct{ checks []sandbox.Check }

func (p *prober) must(name string, err error) {
	detail := "works"
	if err != nil {
		detail = err.Error()
	}
	p.checks = append(p.checks, sandbox.Check{Name: name, OK: err == nil, Detail: detail})
}

func (p *prober) mustNot(name string, err error) {
	detail := "it was possible"
	if err != nil {
		detail = "refused: " + err.Error()
	}
	p.checks = append(p.checks, sandbox.Check{Name: name, OK: err != nil, Detail: detail})
}

// probeMain tries everything and prints the checks as JSON.
func probeMain(args []string) int {
	var orders probeOrders
	if len(args) != 1 || json.Unmarshal([]byte(args[0]), &orders) != nil {
		return 2
	}
	p := &prober{}
	p.files(orders)
	p.network(orders)
	p.processes(orders)
	p.privileges()
	if json.NewEncoder(os.Stdout).Encode(p.checks) != nil {
		return 1
	}
	return 0
}

func (p *prober) files(o probeOrders) {
	if o.Inside != "" {
		p.must("control: a file in the workspace can be written", os.WriteFile(filepath.Join(o.Inside, "file"), []byte("x"), 0o600))
	}
	p.must("control: a temporary file can be written", os.WriteFile(filepath.Join(os.TempDir(), "confine-probe"), []byte("x"), 0o600))
	p.must("control: /dev/null can be written", writeExisting("/dev/null"))
	for _, path := range o.Outside {
		err := writeExisting(path)
		if _, statErr := os.Lstat(path); statErr != nil {
			err = create(path)
		}
		p.mustNot("fileWrite: a file outside can be written", err)
	}
	create(o.Beside) // judged on the host
	p.mustNot("metadata: the mode of a file outside can be changed", os.Chmod(o.File, 0o640))
	now := time.Unix(1, 0)
	p.mustNot("metadata: the times of a file outside can be changed", os.Chtimes(o.File, now, now))
	p.mustNot("devices: a device node can be made", unix.Mknod(filepath.Join(os.TempDir(), "device"), unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))))
	if o.Device != "" {
		p.mustNot("devices: a device of the host can be opened", writeExisting(o.Device))
	}
}

func writeExisting(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err == nil {
		f.Close()
	}
	return err
}

func create(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		f.Close()
	}
	return err
}

func (p *prober) network(o probeOrders) {
	if o.Address != "" {
		p.mustNot("network: a server on the host can be reached", dial("tcp", o.Address))
	}
	p.mustNot("unixSockets: an abstract socket of the host can be reached", dial("unix", o.Abstract))
}

func dial(network, address string) error {
	c, err := net.DialTimeout(network, address, time.Second)
	if err == nil {
		c.Close()
	}
	return err
}

func (p *prober) processes(o probeOrders) {
	signalled := unix.Kill(o.Server, 0)
	opened := writeExisting(fmt.Sprintf("/proc/%d/mem", o.Server))
	if found, ok := readProcess(o.Server); ok && found.start != o.Started {
		// Numbers begin anew inside, and a server in a container has a low one:
		// this is a process of the run, perhaps a thread of our own.
		signalled, opened = unix.ESRCH, unix.ESRCH
	}
	p.mustNot("processes: a process outside can be signalled", signalled)
	p.mustNot("processes: memory of a process outside can be opened", opened)
}

func (p *prober) privileges() {
	p.mustNot("control: a new user namespace", unix.Unshare(unix.CLONE_NEWUSER))
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		p.must("control: reading /proc/self/status", err)
		return
	}
	for _, want := range []string{"NoNewPrivs:\t1", "Seccomp:\t2"} {
		err := error(nil)
		if !strings.Contains(string(status), want+"\n") {
			err = fmt.Errorf("it does not say %q", want)
		}
		p.must("control: "+strings.ReplaceAll(want, "\t", " "), err)
	}
}
