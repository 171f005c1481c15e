package landlock

import (
	"fmt"
	"os"

	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/local"
	"github.com/confine-dev/confine/sandbox/restrict"
	"github.com/confine-dev/confine/sandbox/view"
)

const missing = "the kernel does not offer Landlock (it came with Linux 5.13 and can be switched off at boot)"

// Names of the layers, as reported.
const (
	layerNamespaces = "namespaces"
	layerLandlock   = "landlock"
	layerSeccomp    = "seccomp"
)

// Claims implements local.Wrapper.
func (w *Wrapper) Claims(policy sandbox.Policy, namespaces bool) local.Claims {
	if w.abi.Version == 0 {
		return local.Claims{Missing: missing, Remedies: []string{
			"boot a kernel with CONFIG_SECURITY_LANDLOCK and \"landlock\" among the lsm= boot parameter's values"}}
	}
	c := local.Claims{Version: fmt.Sprintf("ABI %d", w.abi.Version), Layers: []string{layerLandlock, layerSeccomp}}
	c.ABI, c.MissingRights = w.abi.Version, w.abi.Lacks()
	if namespaces {
		c.Layers = append([]string{layerNamespaces}, c.Layers...)
		c.Facets = view.Facets(policy, w.abi)
	} else {
		c.Facets = w.outsideFacets(policy)
		program, _ := os.Executable() // what would need a profile
		why, remedies := local.ThisHost().Refuser(program)
		remedies[0] = why + ": " + remedies[0]
		c.Remedies = remedies
	}
	return c
}

var enforced = sandbox.FacetReport{State: sandbox.Enforced}

func partial(reason string) sandbox.FacetReport {
	return sandbox.FacetReport{State: sandbox.Partial, Reason: reason}
}

func open(reason string) sandbox.FacetReport {
	return sandbox.FacetReport{State: sandbox.Open, Reason: reason}
}

// unprotected is what rules that add up cannot keep.
const unprotected = "without namespaces nothing in a writable folder can be kept read-only: git's hooks and configuration and the settings of editors and agents can be changed there; what was changed is listed as planted"

// outsideFacets holds where the host refuses namespaces.
func (w *Wrapper) outsideFacets(policy sandbox.Policy) map[sandbox.Facet]sandbox.FacetReport {
	facets := map[sandbox.Facet]sandbox.FacetReport{
		sandbox.FileWrite:   enforced,
		sandbox.FileRead:    open("without namespaces nothing can be hidden: a command can read every file that its user can read, credentials and confine's own among them"),
		sandbox.Network:     enforced,
		sandbox.UnixSockets: open("without namespaces the sockets and the shared memory of host services stay reachable"),
		sandbox.Processes:   partial("without namespaces other processes can be seen, their priority lowered and their processors chosen, and one that forks fast enough can outlive its run for a moment"),
		sandbox.Metadata:    open("without namespaces mode, owner, times and attributes of files outside the workspace can be changed by their owner"),
		sandbox.Devices:     partial("without namespaces devices that their user can read can be read, the person's terminals among them"),
	}
	if policy.Mode == sandbox.WorkspaceWrite {
		facets[sandbox.FileWrite] = partial(unprotected)
	}
	if w.abi.Version < restrict.TruncateVersion {
		reason := fmt.Sprintf("Landlock ABI %d cannot refuse truncating files (ABI 3, Linux 6.2, can)", w.abi.Version)
		if policy.Mode == sandbox.WorkspaceWrite {
			reason += "; " + unprotected
		}
		facets[sandbox.FileWrite] = partial(reason)
	}
	if w.abi.Version < restrict.DevicesVersion {
		facets[sandbox.Devices] = partial(fmt.Sprintf("without namespaces devices that their user can read can be read, and Landlock ABI %d cannot refuse ioctl on them (ABI 5, Linux 6.10, can)", w.abi.Version))
	}
	if !w.abi.Scopes {
		facets[sandbox.Processes] = open(fmt.Sprintf("without namespaces Landlock ABI %d cannot refuse signals to other processes (ABI 6, Linux 6.12, can)", w.abi.Version))
	}
	if policy.Network {
		facets[sandbox.Network] = view.NetworkGranted
	}
	return facets
}
