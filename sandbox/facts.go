package sandbox

// Facet is one thing that a sandbox can govern.
type Facet string

// The closed set of facets.
const (
	FileWrite   Facet = "fileWrite"   // creating, changing and removing files outside the roots
	FileRead    Facet = "fileRead"    // reading files that the policy hides
	Network     Facet = "network"     // reaching anything outside the session by network
	UnixSockets Facet = "unixSockets" // reaching host services by unix sockets and FIFOs
	Processes   Facet = "processes"   // seeing, signalling and outliving other processes
	Metadata    Facet = "metadata"    // owner, mode, times and attributes of files outside the roots
	Devices     Facet = "devices"     // device nodes
)

// Facets lists every facet in reporting order.
var Facets = []Facet{FileWrite, FileRead, Network, UnixSockets, Processes, Metadata, Devices}

// FacetState says how far a facet is governed.
type FacetState string

// The closed set of states.
const (
	Enforced   FacetState = "enforced"   // shown to hold on this host with this profile
	Partial    FacetState = "partial"    // holds with named exceptions
	Open       FacetState = "open"       // not governed
	Unverified FacetState = "unverified" // somebody else vouches for it
)

// FacetReport is the state of one facet and, unless it is Enforced, the reason.
type FacetReport struct {
	State  FacetState `json:"state"`
	Reason string     `json:"reason,omitempty"`
}

// Enforcement sums the facets up.
type Enforcement string

// EnforcementFull means that every facet the mode promises is enforced.
const (
	EnforcementFull    Enforcement = "full"
	EnforcementPartial Enforcement = "partial"
)

// Names of the providers, as reported and as configured. ProviderAuto is a
// setting only.
const (
	ProviderAuto        = "auto"
	ProviderBwrap       = "bwrap"
	ProviderLandlock    = "landlock"
	ProviderSeatbelt    = "seatbelt"
	ProviderOpenSandbox = "opensandbox"
	ProviderNone        = "none"
)

// Facts are what is known about how one run was confined.
type Facts struct {
	Mode        Mode                  `json:"mode"`
	Provider    string                `json:"provider"`
	Kind        string                `json:"kind,omitempty"`        // linux-landlock, linux-bwrap, macos-seatbelt; empty for none
	Layers      []string              `json:"layers,omitempty"`      // what stands between the command and the host, outermost first
	Enforcement Enforcement           `json:"enforcement,omitempty"` // empty when nothing was confined
	Facets      map[Facet]FacetReport `json:"facets,omitempty"`
	Limits      []LimitReport         `json:"limits,omitempty"` // each of Resources, if the command was confined
	Planted     []string              `json:"planted,omitempty"`
}

// Promised lists the facets that make the enforcement of a confined mode full.
// Network counts only while it is not granted, FileRead only if something is to
// be hidden. UnixSockets is reported but promised by no mode.
func Promised(p Policy) []Facet {
	promised := []Facet{FileWrite, Processes, Metadata, Devices}
	if len(p.Unreadable) > 0 {
		promised = append(promised, FileRead)
	}
	if !p.Network {
		promised = append(promised, Network)
	}
	return promised
}

// Sum derives the enforcement from the facets for a policy.
func Sum(p Policy, facets map[Facet]FacetReport) Enforcement {
	for _, f := range Promised(p) {
		if facets[f].State != Enforced {
			return EnforcementPartial
		}
	}
	return EnforcementFull
}

// Evidence says where the knowledge of a denial comes from.
type Evidence string

// Observed denials were seen as refused calls; Stderr ones were read from the
// command's messages and compared with the policy.
const (
	Observed Evidence = "observed"
	Stderr   Evidence = "stderr"
)

// Denial is one thing that the sandbox, and not plain permissions, refused.
type Denial struct {
	Op       string   `json:"op"`                // write, create, remove, connect, …
	Path     string   `json:"path,omitempty"`    // absolute, links resolved; any bytes but NUL, so not to be shown as it is
	Address  string   `json:"address,omitempty"` // host:port for network denials
	Errno    string   `json:"errno,omitempty"`   // EROFS, EACCES, …
	PID      int      `json:"pid,omitempty"`     // 0 if not known
	Exe      string   `json:"exe,omitempty"`     // program that was refused, as far as known
	Evidence Evidence `json:"evidence"`
	Count    int      `json:"count"` // how many times it was seen; at least 1

	// Incidental means that the program did without: a cache, a history or
	// statistics of its own (Housekeeping), a look at routes, an Idle operation. Such a denial alone
	// makes no run denied.
	Incidental bool `json:"incidental,omitempty"`

	// Idle means that the operation would have changed nothing and told nobody: a socket
	// for datagrams was to get an address to send to, or a file was to be
	// replaced by one with the same content.
	Idle bool `json:"-"`
}
