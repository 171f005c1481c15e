package observe

import (
	"encoding/binary"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/local"
	"github.com/confine-dev/confine/sandbox/restrict"
	"golang.org/x/sys/unix"
)

// What an actor does in the network.

func sockaddr(address string) (family int, to unix.Sockaddr) {
	at := netip.MustParseAddrPort(address)
	if at.Addr().Is4() {
		return unix.AF_INET, &unix.SockaddrInet4{Port: int(at.Port()), Addr: at.Addr().As4()}
	}
	return unix.AF_INET6, &unix.SockaddrInet6{Port: int(at.Port()), Addr: at.Addr().As16()}
}

func reach(kind int, address string) error {
	family, to := sockaddr(address)
	fd, err := unix.Socket(family, kind, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Connect(fd, to)
}

func sendTo(address string) error {
	family, to := sockaddr(address)
	fd, err := unix.Socket(family, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Sendto(fd, []byte("x"), 0, to)
}

// sendMessages sends one datagram by sendmmsg, as resolvers do.
func sendMessages(address string) error {
	family, _ := sockaddr(address)
	at := netip.MustParseAddrPort(address)
	fd, err := unix.Socket(family, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	name := unix.RawSockaddrInet4{Family: unix.AF_INET, Port: at.Port()<<8 | at.Port()>>8, Addr: at.Addr().As4()}
	data := []byte("x")
	io := unix.Iovec{Base: &data[0], Len: 1}
	message := struct {
		header unix.Msghdr
		length uint32
	}{header: unix.Msghdr{Name: (*byte)(unsafe.Pointer(&name)), Namelen: unix.SizeofSockaddrInet4, Iov: &io, Iovlen: 1}}
	return call(unix.SYS_SENDMMSG, uintptr(fd), uintptr(unsafe.Pointer(&message)), 1, 0)
}

func reachUnix(kind int, path string) error {
	fd, err := unix.Socket(unix.AF_UNIX, kind, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Connect(fd, &unix.SockaddrUnix{Name: path})
}

// bindUnix gives a socket a name, which stays.
func bindUnix(path string) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Bind(fd, &unix.SockaddrUnix{Name: path})
}

// listen opens a listener that stays.
func listen(address string) error {
	family, to := sockaddr(address)
	fd, err := unix.Socket(family, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	if err := unix.Bind(fd, to); err != nil {
		return err
	}
	return unix.Listen(fd, 1)
}

// hostServers listen on this host.
type hostServers struct{ tcp, udp, closed, unix, abstract string }

func startServers(t *testing.T, dir string) hostServers {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	tcp, err := net.Listen("tcp4", "127.0.0.1:0")
	must(err)
	t.Cleanup(func() { tcp.Close() })
	udp, err := net.ListenPacket("udp4", "127.0.0.1:0")
	must(err)
	t.Cleanup(func() { udp.Close() })
	closed, err := net.Listen("tcp4", "127.0.0.1:0")
	must(err)
	must(closed.Close())
	h := hostServers{tcp: tcp.Addr().String(), udp: udp.LocalAddr().String(), closed: closed.Addr().String(), unix: filepath.Join(dir, "socket"),
		abstract: "@observe-test-" + strconv.Itoa(os.Getpid())}
	for _, name := range []string{h.unix, h.abstract} {
		l, err := net.Listen("unix", name)
		must(err)
		t.Cleanup(func() { l.Close() })
	}
	return h
}

func TestNetwork(t *testing.T) {
	s := newScene(t, true)
	hidden := filepath.Join(s.out, "hidden")
	if os.Mkdir(hidden, 0o755) != nil || os.WriteFile(s.out+"/dead", nil, 0o644) != nil {
		t.Fatal("no files")
	}
	s.orders.Hidden = []string{hidden}
	h := startServers(t, hidden)
	dead, err := net.Listen("unix", filepath.Join(hidden, "dead"))
	if err != nil {
		t.Fatal(err)
	}
	dead.(*net.UnixListener).SetUnlinkOnClose(false)
	dead.Close()
	visible, err := net.Listen("unix", filepath.Join(s.out, "visible"))
	if err != nil {
		t.Fatal(err)
	}
	defer visible.Close()
	agent, err := net.Listen("unix", filepath.Join(s.out, "agent"))
	if err != nil {
		t.Fatal(err)
	}
	defer agent.Close()
	s.orders.Nulled = []string{s.out + "/agent"}
	s.options.reaches = func(ip netip.Addr) bool { return ip != netip.MustParseAddr("203.0.113.9") }
	open := "127.0.0.1:4711"

	answers, observed := s.act(
		"tcp "+h.tcp, "tcp 0.0.0.0"+h.tcp[strings.Index(h.tcp, ":"):], "tcp "+h.closed, "udp "+h.udp, "udp "+h.tcp, "sendto "+h.udp, "sendmmsg "+h.udp,
		"tcp 192.0.2.7:80", "sendto 192.0.2.7:9", "sendmmsg 192.0.2.8:9", "tcp [2001:db8::1]:443", "tcp [::ffff:192.0.2.9]:80", "udp 203.0.113.9:80", "udp 224.0.0.1:80",
		"listen "+open, "tcp "+open,
		"unix "+h.unix, "unix "+hidden+"/dead", "unix "+hidden+"/none", "unix "+s.out+"/visible", "unix "+s.out+"/agent", "unix "+s.out+"/dead", "unix "+h.abstract, "unix @none")
	want := []string{"connect " + h.tcp + " ECONNREFUSED", "connect " + h.udp + " ECONNREFUSED",
		"connect 192.0.2.7:80 ENETUNREACH", "connect 192.0.2.7:9 ENETUNREACH", "connect 192.0.2.8:9 ENETUNREACH", "connect [2001:db8::1]:443 ENETUNREACH", "connect 192.0.2.9:80 ENETUNREACH",
		"connect " + h.unix + " ENOENT", "connect " + s.out + "/agent ECONNREFUSED", "connect " + h.abstract + " ECONNREFUSED"}
	if got := lines(observed.Denials); !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v\nanswers %v", got, want, answers)
	}
	counts := map[string]int{}
	for _, d := range observed.Denials {
		counts[d.Address] = d.Count
	}
	if counts[h.tcp] != 2 || counts[h.udp] != 3 {
		t.Errorf("counts are %v", counts)
	}
}

// A socket for datagrams gets an address to send to, and nothing is sent: programs look
// so which of their addresses they would be seen by.
func TestLooksForAnAddress(t *testing.T) {
	s := newScene(t, true)
	s.options.reaches = func(netip.Addr) bool { return true }
	_, observed := s.act("udp 192.0.2.7:80", "udp [2001:db8::1]:443", "tcp 192.0.2.8:80", "sendto 192.0.2.9:9", "udp 192.0.2.10:53", "udp 192.0.2.11:123", "sendto 192.0.2.11:123")
	idle := map[string]bool{}
	for _, d := range observed.Denials {
		idle[d.Address] = d.Idle
	}
	want := map[string]bool{"192.0.2.7:80": true, "[2001:db8::1]:443": true, "192.0.2.8:80": false, "192.0.2.9:9": false, "192.0.2.10:53": false, "192.0.2.11:123": false}
	if !maps.Equal(idle, want) {
		t.Errorf("idle are %v, want %v", idle, want)
	}
}

// Where the host's network was granted Landlock tells the run's own abstract sockets
// from others.
func TestAbstractSocketsOfTheHost(t *testing.T) {
	name := func(suffix string) string { return "@observe-scope-" + strconv.Itoa(os.Getpid()) + suffix }
	n := newNetwork(Options{Landlock: restrict.ScopesVersion}, local.Watched{Namespaces: true, Policy: sandbox.Policy{Network: true}})
	serve := func(name string) {
		l, err := net.Listen("unix", name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
	}
	serve(name("-host"))
	n.bound(os.Getpid(), name("-host")) // which fails: it is taken
	n.bound(os.Getpid(), name("-own"))
	serve(name("-own"))
	serve("@0a" + strconv.Itoa(100+os.Getpid()%900))
	refused := func(name string) bool {
		denials := n.refused(os.Getpid(), request{kind: connecting}, address{unix: name}, -1)
		return len(denials) == 1 && denials[0].Address == name && denials[0].Errno == "EPERM"
	}
	for text, want := range map[string]bool{name("-host"): true, name("-own"): false, name("-none"): false, "@0a" + strconv.Itoa(100+os.Getpid()%900): false} {
		if got := refused(text); got != want {
			t.Errorf("%s refused: %t, want %t", text, got, want)
		}
	}
	for i := range maxOwn + 1 {
		n.bound(os.Getpid(), name(strconv.Itoa(i)))
	}
	if len(n.own) > maxOwn || refused(name("-host")) {
		t.Errorf("%d names are remembered, and more are judged", len(n.own))
	}
	for version, granted := range map[int]bool{restrict.ScopesVersion - 1: true, restrict.ScopesVersion: false} {
		n = newNetwork(Options{Landlock: version}, local.Watched{Namespaces: true, Policy: sandbox.Policy{Network: granted}})
		if refused(name("-host")) {
			t.Errorf("Landlock %d, network %t: nothing refuses it so", version, granted)
		}
	}
}

func TestGrantedNetwork(t *testing.T) {
	s := newScene(t, true)
	s.network = true
	h := startServers(t, s.out)
	if _, observed := s.act("tcp "+h.closed, "tcp 192.0.2.7:80"); len(observed.Denials) != 0 {
		t.Errorf("got %v", observed.Denials)
	}
}

func TestResolver(t *testing.T) {
	var servers []string
	data, _ := os.ReadFile("/etc/resolv.conf")
	for line := range strings.Lines(string(data)) {
		if fields := strings.Fields(line); len(fields) == 2 && fields[0] == "nameserver" {
			if ip, err := netip.ParseAddr(fields[1]); err == nil && !ip.IsLoopback() && ip.Zone() == "" {
				servers = append(servers, netip.AddrPortFrom(ip, 53).String())
			}
		}
	}
	if len(servers) == 0 {
		t.Skip("this host has no resolver elsewhere")
	}
	s := newScene(t, true)
	s.options.reaches = func(netip.Addr) bool { return true }
	_, observed := s.act("udp "+servers[0], "udp 192.0.2.7:53")
	if got, want := lines(observed.Denials), []string{"resolve " + servers[0] + " ENETUNREACH", "connect 192.0.2.7:53 ENETUNREACH"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestParseAddress(t *testing.T) {
	inet := func(family uint16, rest ...byte) []byte {
		return append(binary.NativeEndian.AppendUint16(nil, family), rest...)
	}
	six := inet(unix.AF_INET6, slices.Concat([]byte{0, 53, 0, 0, 0, 0, 0x20, 1, 0xd, 0xb8}, make([]byte, 11), []byte{7, 0, 0, 0, 0})...)
	for _, c := range []struct {
		name string
		raw  []byte
		want string
	}{
		{"IPv4", inet(unix.AF_INET, 0x1f, 0x90, 192, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0), "192.0.2.1:8080"},
		{"a short IPv4", inet(unix.AF_INET, 0x1f, 0x90, 192, 0, 2), ""},
		{"IPv6", six, "[2001:db8::7]:53"},
		{"a short IPv6", six[:20], ""},
		{"a path", inet(unix.AF_UNIX, []byte("/run/x\x00rest")...), "/run/x"},
		{"a path to the end", inet(unix.AF_UNIX, []byte("/run/x")...), "/run/x"},
		{"an abstract name", inet(unix.AF_UNIX, []byte("\x00a\x00b")...), "@a\x00b"},
		{"no name", inet(unix.AF_UNIX), ""},
		{"an empty abstract name", inet(unix.AF_UNIX, 0), ""},
		{"netlink", inet(unix.AF_NETLINK, make([]byte, 10)...), ""},
		{"nothing", inet(unix.AF_UNSPEC, make([]byte, 14)...), ""},
	} {
		a, ok := parseAddress(c.raw)
		got := a.unix
		if a.inet.IsValid() {
			got = a.inet.String()
		}
		if ok != (c.want != "") || ok && got != c.want {
			t.Errorf("%s: got %q, %t", c.name, got, ok)
		}
	}
}

func TestParseSocket(t *testing.T) {
	for text, want := range map[string]string{
		"0100007F:1F90":                         "127.0.0.1:8080",
		"00000000:0035":                         "0.0.0.0:53",
		"00000000000000000000000001000000:0016": "[::1]:22",
		"B80D0120000000000000000007000000:01BB": "[2001:db8::7]:443",
		"0000000000000000FFFF00000100007F:0050": "[::ffff:127.0.0.1]:80",
		"0100007F":                              "", "0100:0016": "", "zz00007F:0016": "", "": "",
	} {
		got, ok := parseSocket(text)
		if ok != (want != "") || ok && got.String() != want {
			t.Errorf("%q: got %v, %t", text, got, ok)
		}
	}
}

func TestTakes(t *testing.T) {
	ip := netip.MustParseAddr
	for _, c := range []struct {
		bound, to string
		want      bool
	}{
		{"127.0.0.1", "127.0.0.1", true}, {"127.0.0.1", "127.0.0.2", false}, {"0.0.0.0", "127.0.0.2", true}, {"0.0.0.0", "::1", false},
		{"::", "127.0.0.1", true}, {"::", "::1", true}, {"::1", "127.0.0.1", false}, {"::ffff:127.0.0.1", "127.0.0.1", true},
	} {
		if got := takes(ip(c.bound), ip(c.to)); got != c.want {
			t.Errorf("%s takes %s: %t", c.bound, c.to, got)
		}
	}
}

// TestManyListeners: a table that takes the kernel many answers is read to its end.
func TestManyListeners(t *testing.T) {
	const count = 100 // of 150 bytes each
	var ports []netip.AddrPort
	for range count {
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).AddrPort())
	}
	for _, port := range ports {
		if !listens("self", true, port) {
			t.Errorf("nobody is seen to listen at %v", port)
		}
	}
}
