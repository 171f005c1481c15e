package observe

import (
	"encoding/binary"
	"net/netip"
	"os"
	"strings"

	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/local"
	"github.com/confine-dev/confine/sandbox/restrict"
	"golang.org/x/sys/unix"
)

// address is where a call wants to reach.
type address struct {
	inet netip.AddrPort // of the internet, if valid
	unix string         // path of a socket, or "@" and the rest of an abstract name
}

// maxAddress is the size of the longest address, struct sockaddr_storage.
const maxAddress = 128

// readAddress reads the address of a request from a stopped task. ok is false for
// families that lead nowhere else.
func readAddress(tid int, r request) (a address, ok bool, errno unix.Errno) {
	at, size := r.addr, r.size
	if size == messages {
		// Of several datagrams at once, the first one's.
		var header [16]byte // of struct msghdr: msg_name, msg_namelen
		if n, errno := readMemory(tid, at, header[:]); errno != 0 || n < len(header) {
			return a, false, errno
		}
		at, size = binary.NativeEndian.Uint64(header[:]), uint64(binary.NativeEndian.Uint32(header[8:]))
		if at == 0 {
			return a, false, 0 // a connected socket
		}
	}
	var buffer [maxAddress]byte
	if size < 2 || size > maxAddress {
		return a, false, 0
	}
	n, errno := readMemory(tid, at, buffer[:size])
	if errno != 0 || n < int(size) {
		return a, false, errno
	}
	a, ok = parseAddress(buffer[:size])
	return a, ok, 0
}

// parseAddress reads a struct sockaddr.
func parseAddress(raw []byte) (a address, ok bool) {
	const portAt, ip4At, ip6At, size4, size6 = 2, 4, 8, 16, 24
	switch binary.NativeEndian.Uint16(raw) {
	case unix.AF_INET:
		if len(raw) < size4 {
			return a, false
		}
		ip := netip.AddrFrom4([4]byte(raw[ip4At:]))
		a.inet = netip.AddrPortFrom(ip, binary.BigEndian.Uint16(raw[portAt:]))
		return a, true
	case unix.AF_INET6:
		if len(raw) < size6 {
			return a, false
		}
		ip := netip.AddrFrom16([16]byte(raw[ip6At:])).Unmap()
		a.inet = netip.AddrPortFrom(ip, binary.BigEndian.Uint16(raw[portAt:]))
		return a, true
	case unix.AF_UNIX:
		name := string(raw[2:])
		if strings.HasPrefix(name, "\x00") {
			a.unix = "@" + name[1:]
			return a, len(name) > 1
		}
		a.unix, _, _ = strings.Cut(name, "\x00")
		return a, a.unix != ""
	}
	return a, false
}

// network judges what a run tries to reach. It has a network of its own, or the
// host's if that was granted.
type network struct {
	reaches func(netip.Addr) bool // whether the host has a route
	scoped  bool                  // the host's network, in which Landlock refuses abstract sockets of others
	own     map[string]bool       // abstract names that the run gave to sockets of its own; only if scoped
}

func newNetwork(o Options, run local.Watched) network {
	return network{o.reaches, run.Policy.Network && o.Landlock >= restrict.ScopesVersion, map[string]bool{}}
}

// maxOwn bounds how many of these are remembered. Nothing is judged by names then.
const maxOwn = 1024

// bound notes an abstract name that a task gives to a socket. One that is taken by
// somebody else stays theirs.
func (n *network) bound(tid int, name string) {
	if !n.scoped || hasAbstract(taskName(tid), abstract(name)) {
		return
	}
	if n.scoped = len(n.own) < maxOwn; n.scoped {
		n.own[name] = true
	}
}

// chosen reports whether the kernel may have given a socket this abstract name, so
// that nobody knows whose it is (unix(7), "Autobind feature").
func chosen(name string) bool {
	return len(name) == len("@00000") && strings.Trim(name[1:], "0123456789abcdef") == ""
}

// refused finds out whether an address can be reached from the host but not from
// the run.
func (n network) refused(tid int, r request, a address, root int) []sandbox.Denial {
	switch {
	case a.inet.IsValid():
		return n.inet(tid, r, a.inet)
	case strings.HasPrefix(a.unix, "@"):
		name := abstract(a.unix)
		if n.scoped {
			if n.own[a.unix] || chosen(a.unix) || !hasAbstract("self", name) {
				return nil
			}
			return []sandbox.Denial{{Op: opConnect, Address: printable(a.unix), Errno: "EPERM"}}
		}
		if !hasAbstract("self", name) || hasAbstract(taskName(tid), name) {
			return nil
		}
		return []sandbox.Denial{{Op: opConnect, Address: printable(a.unix), Errno: "ECONNREFUSED"}}
	}
	return n.path(tid, a.unix, root)
}

// inet judges an address of the internet: the run has a loopback and nothing else.
func (n network) inet(tid int, r request, to netip.AddrPort) []sandbox.Denial {
	ip := to.Addr()
	if ip.IsUnspecified() {
		ip = loopback(ip) // the system takes it for that
	}
	d := sandbox.Denial{Op: opConnect, Address: netip.AddrPortFrom(ip, to.Port()).String(), Errno: "ENETUNREACH"}
	const domain = 53
	if to.Port() == domain && isResolver(ip) {
		d.Op = opResolve
	}
	switch {
	case ip.IsLoopback():
		stream, ok := isStream(tid, r.socket)
		target := netip.AddrPortFrom(ip, to.Port())
		if !ok || !listens("self", stream, target) || listens(taskName(tid), stream, target) {
			return nil
		}
		d.Errno = "ECONNREFUSED"
	case ip.IsMulticast(), ip == broadcast, !n.reaches(ip):
		return nil
	case !r.sends && to.Port() != domain:
		stream, ok := isStream(tid, r.socket)
		d.Idle = ok && !stream // it sends nothing; programs learn so which address of theirs the system would take
	}
	return []sandbox.Denial{d}
}

var broadcast = netip.AddrFrom4([4]byte{255, 255, 255, 255})

func loopback(ip netip.Addr) netip.Addr {
	if ip.Is4() {
		return netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	return netip.IPv6Loopback()
}

// isResolver reports whether this host asks an address for names.
func isResolver(ip netip.Addr) bool {
	data, err := os.ReadFile("/etc/resolv.conf")
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] != "nameserver" {
			continue
		}
		if server, err := netip.ParseAddr(fields[1]); err == nil && server.Unmap().WithZone("") == ip.WithZone("") {
			return true
		}
	}
	return false
}

// path judges the path of a socket: the host has somebody there and the run's
// view does not.
func (n network) path(tid int, text string, root int) []sandbox.Denial {
	inside, _, errno := find(tid, root, name{dir: unix.AT_FDCWD, follow: true}, text)
	found := errno == 0 && inside.exists()
	covered := found && inside.kind() != unix.S_IFSOCK // by what hides it
	inside.close()
	if found && !covered || errno != 0 && errno != unix.ENOENT && errno != unix.ENOTDIR {
		return nil
	}
	if !strings.HasPrefix(text, "/") {
		folder, err := os.Readlink("/proc/" + taskName(tid) + "/cwd")
		if err != nil {
			return nil
		}
		text = folder + "/" + text
	}
	// Names in /proc would mean something of ours.
	fd, err := unix.Openat2(unix.AT_FDCWD, text, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_MAGICLINKS})
	if err != nil {
		return nil
	}
	host, errno := placeOf(fd)
	if errno != 0 {
		return nil
	}
	defer host.close()
	path, named := host.path()
	if !named || host.kind() != unix.S_IFSOCK || !may(host.object, unix.W_OK) || !isServed(&host.stat) {
		return nil
	}
	d := sandbox.Denial{Op: opConnect, Path: path, Errno: "ENOENT"}
	if covered {
		d.Errno = "ECONNREFUSED"
	}
	return []sandbox.Denial{d}
}
