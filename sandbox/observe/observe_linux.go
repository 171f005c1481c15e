package observe

import (
	"net/netip"
	"os"

	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/local"
	"github.com/confine-dev/confine/sandbox/restrict"
	"golang.org/x/sys/unix"
)

// Options configures an observer. The zero value observes this host.
type Options struct {
	// Landlock is the version of Landlock that confines commands; 0 means the
	// kernel's. Before version 2 every rename from one folder to another is
	// refused, before version 3 truncating a file never is.
	Landlock int

	reaches func(netip.Addr) bool // whether the host has a route; nil: ask this host
}

// New returns an observer, which any number of runs may share.
func New(o Options) local.Observer {
	if o.Landlock == 0 {
		o.Landlock = restrict.Version()
	}
	if o.reaches == nil {
		o.reaches = sandbox.HostReaches
	}
	return &observer{
		options:  o,
		filters:  map[bool][]unix.SockFilter{false: filter(false), true: filter(true)},
		decoders: map[bool]map[int32]func(args) request{false: decoders(false), true: decoders(true)},
	}
}

type observer struct {
	options Options

	// With and without namespaces; never changed.
	filters  map[bool][]unix.SockFilter
	decoders map[bool]map[int32]func(args) request
}

// Filter implements local.Observer.
func (o *observer) Filter(namespaces bool) []unix.SockFilter { return o.filters[namespaces] }

// Watch implements local.Observer.
func (o *observer) Watch(listener *os.File, run local.Watched) local.Watch {
	w := o.prepare(listener, run)
	go w.loop()
	return w
}
