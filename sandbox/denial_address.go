package sandbox

import (
	"net"
	"net/netip"
	"regexp"
	"strings"
)

// addressForms are how programs name what they could not reach. The groups are
// host and, where the form has one, port.
var addressForms = []func() *regexp.Regexp{
	lazyRegexp(`/dev/(?:tcp|udp)/([^/\s:]+)/(\d+)`),
	lazyRegexp(`host='([^']+)', port=(\d+)`),
	lazyRegexp(`(?i)connect(?:ion)? to (?:host |server (?:at |on socket )?)?"?[^\s",]+"? \(([0-9a-fA-F.:]+)\),? port (\d+)`),
	lazyRegexp(`(?i)connect(?:ion)? to (?:host |server (?:at )?)?"?([^\s",]+)"?,? port (\d+)`),
	lazyRegexp(`dial (?:tcp|udp)[46]? \[?([^\s\]]+?)\]?:(\d+): `),
	lazyRegexp(`\bE[A-Z]+ ([0-9a-fA-F.:]+):(\d+)`),
	lazyRegexp(`\b(\d{1,3}(?:\.\d{1,3}){3})(?:[: ](?:port )?(\d{1,5}))?\b`),
}

// resolveForms are how programs name a host that they could not look up.
var resolveForms = []func() *regexp.Regexp{
	lazyRegexp(`getaddrinfo E[A-Z_]+ ([^\s,)]+)`),
	lazyRegexp(`(?i)resolve host(?:name)?(?: address)?:? ['"‘]?([^\s:,;)'"’]+)`),
	lazyRegexp(`lookup ([^\s:]+)(?: on \S+)?: `),
	lazyRegexp(`(?i)resolv(?:e|ing) ['"‘]([^'"’]+)['"’]`),
	lazyRegexp(`host='([^']+)'`),
	lazyRegexp(`(?:^|: )([A-Za-z0-9][A-Za-z0-9.-]*): Temporary failure in name resolution`),
}

// parseAddress finds the address that a line is about: op is opConnect for
// host:port or a numeric host, opResolve for a name.
func parseAddress(line string) (op, address string) {
	lower := lowerASCII(line)
	if strings.Contains(lower, "resol") || strings.Contains(lower, "getaddrinfo") || strings.Contains(lower, "lookup ") {
		for _, form := range resolveForms {
			for _, match := range form().FindAllStringSubmatch(line, 4) {
				if isHostName(match[1]) {
					return opResolve, match[1]
				}
			}
		}
		return "", ""
	}
	for _, form := range addressForms {
		match := form().FindStringSubmatch(line)
		if match == nil {
			continue
		}
		host, port := match[1], match[2]
		if host == "localhost" {
			host = "127.0.0.1"
		}
		if _, err := netip.ParseAddr(host); err != nil {
			continue
		}
		if port == "" {
			return opConnect, host
		}
		return opConnect, net.JoinHostPort(host, port)
	}
	return "", ""
}

// isHostName accepts names that a public resolver could know: letters, digits,
// hyphens and at least one dot, and none of those set aside (RFC 6761).
func isHostName(host string) bool {
	if len(host) > 253 || !strings.Contains(host, ".") {
		return false
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return false
	}
	labels := strings.Split(strings.TrimSuffix(lowerASCII(host), "."), ".")
	for _, label := range labels {
		if label == "" || len(label) > 63 || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return false
		}
	}
	switch labels[len(labels)-1] {
	case "invalid", "test", "example", "localhost", "local":
		return false
	}
	return true
}

// reachable reports whether this host has a route to an address. Connecting a
// datagram socket asks the routing table and sends nothing.
func reachable(addr netip.Addr) bool {
	if !addr.IsValid() {
		return false
	}
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(addr, 9)))
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

// Addresses for documentation, which are routed like any other (RFC 5737, 3849).
var (
	anywhere4 = netip.MustParseAddr("192.0.2.1")
	anywhere6 = netip.MustParseAddr("2001:db8::1")
)

// judgeAddress decides about the network: without a grant, nothing outside the
// session can be reached, so what this host could reach was refused.
func (j *judge) judgeAddress(m message) (Denial, bool) {
	if j.ctx.Policy.Network {
		return Denial{}, false
	}
	d := Denial{Op: m.op, Address: m.address, Errno: m.errno, Exe: m.exe}
	if m.op == opResolve {
		return d, j.online()
	}
	host, port, err := net.SplitHostPort(m.address)
	if err != nil {
		host = m.address
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return Denial{}, false
	}
	addr = addr.Unmap().WithZone("")
	if addr.IsLoopback() || addr.IsUnspecified() {
		// The session has a loopback of its own; somebody must listen on ours.
		return d, (m.errno == "ECONNREFUSED" || m.errno == "") && j.listens(port)
	}
	return d, !addr.IsMulticast() && j.reaches(addr)
}

// online reports whether this host has a way to the internet at all.
func (j *judge) online() bool { return j.reaches(anywhere4) || j.reaches(anywhere6) }
