package view

import (
	"fmt"

	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/restrict"
)

// Facets says what is governed for a command in a planned view, in namespaces of
// its own and with the refusals and privileges of package restrict. Landlock
// repeats it, in every version, and adds what no mount refuses.
func Facets(policy sandbox.Policy, landlock restrict.ABI) map[sandbox.Facet]sandbox.FacetReport {
	enforced := sandbox.FacetReport{State: sandbox.Enforced}
	facets := map[sandbox.Facet]sandbox.FacetReport{
		sandbox.FileWrite: enforced,
		sandbox.FileRead: {State: sandbox.Open,
			Reason: "nothing is to be hidden: a command can read every file that its user can read, except confine's own and the folders of host services"},
		sandbox.Network:   enforced,
		sandbox.Processes: enforced,
		sandbox.Metadata:  enforced,
		sandbox.Devices:   enforced,
	}
	if len(policy.Unreadable) > 0 {
		facets[sandbox.FileRead] = sandbox.FacetReport{State: sandbox.Enforced,
			Reason: "this speaks of what deny_read and its defaults name, confine's own files and the folders of host services; every other file that its user can read, a command can read"}
	}
	if policy.Network {
		facets[sandbox.Network] = NetworkGranted
	}
	facets[sandbox.UnixSockets] = sockets(policy.Network, landlock)
	return facets
}

// sockets is the facet of sockets, and of other ways to services.
func sockets(network bool, landlock restrict.ABI) sandbox.FacetReport {
	report := sandbox.FacetReport{State: sandbox.Partial,
		Reason: fmt.Sprintf("sockets in /run, /tmp and the user's runtime folder are hidden, and those elsewhere that the kernel lists when a command starts (%d at most); one that is made later, has no absolute name there, or belongs to another network namespace can be reached", MaxSockets)}
	if network && !landlock.Scopes {
		report.Reason += "; with the network granted abstract sockets can be reached as well, which Landlock refuses from ABI 6 on (Linux 6.12)"
	}
	if landlock.Version == 0 {
		report.State = sandbox.Open
		report.Reason = "without Landlock FIFOs of the host can be written to; " + report.Reason
	}
	return report
}

// NetworkGranted is the facet of the network wherever it was granted.
var NetworkGranted = sandbox.FacetReport{State: sandbox.Open, Reason: "the network was granted; every service on localhost can be reached as well"}
