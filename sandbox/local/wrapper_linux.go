package local

import "github.com/confine-dev/confine/sandbox"

// Wrapper is the pure half of a local provider: it turns a policy into a
// launch and says what that launch governs. It never starts anything.
type Wrapper interface {
	Name() string // a sandbox.Provider… constant
	Kind() string // such as linux-landlock

	// Wrap compiles a policy. The error means that the sandbox cannot be built
	// for it.
	Wrap(Request) (*Launch, error)

	// Claims says what a launch for this policy governs, before anybody tried.
	// The engine takes back what its probe could not confirm.
	Claims(policy sandbox.Policy, namespaces bool) Claims
}

// Claims are what a wrapper says of its launches.
type Claims struct {
	Version string // of the mechanism
	Layers  []string
	Facets  map[sandbox.Facet]sandbox.FacetReport

	// Of Landlock, as in sandbox.Report.
	ABI           int
	MissingRights []string

	// Missing says why this wrapper cannot work on this host at all; empty if
	// it may.
	Missing  string
	Unsure   bool // it could not be looked for, which may pass
	Remedies []string
}

// Request is what a Wrapper needs to know for one launch.
type Request struct {
	Policy sandbox.Policy
	Dir    string // working directory of the command

	// Namespaces says that the child will have its own mount, PID, IPC and UTS
	// namespaces and, unless the network is granted, the session's network.
	Namespaces bool

	// Tmp is, with namespaces, where the session's temporary file system is
	// mounted; without, the session's temporary folder.
	Tmp string

	// Caches are folders that the session has laid a writable layer over, whose
	// content it alone sees.
	Caches []Cache

	// State is confine's own folder, to be hidden from the command.
	State string

	// Cover is a folder that is shown in the place of protected folders that are
	// empty, such as those that keep absent paths absent; empty: themselves.
	Cover string

	// Visible are paths that must be readable whatever hides them.
	Visible []string

	// Program is, if not empty, the path of the program as a request names it.
	// It must be readable too, but only as a program: links on the way to it may
	// be the command's, and lead to another place by now.
	Program string
}

// Cache is a tool's cache and what is to be shown in its place.
type Cache struct {
	Path  string // of the host's folder, canonical
	Layer string // mount point, below the session's folder, of that folder with the session's layer
}
