package sandbox

import "net/netip"

// HostReaches reports whether this host has a route to an address. Nothing is
// sent.
func HostReaches(addr netip.Addr) bool { return reachable(addr) }
