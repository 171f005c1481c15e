package opensandbox

import (
	"fmt"

	"github.com/confine-dev/confine/sandbox"
)

const (
	unobserved = "nobody watches what commands are refused in a remote sandbox"
	noLimits   = "the limits of the settings are for commands on this machine; the service bounds a sandbox as its operator and sandbox_cpu and sandbox_memory want"
)

// facets say of each thing who answers for it. Nothing is tried from within, and what
// was would be a service's word.
func (c Config) facets(mode sandbox.Mode, network bool) map[sandbox.Facet]sandbox.FacetReport {
	vouched := func(format string, args ...any) sandbox.FacetReport {
		return sandbox.FacetReport{State: sandbox.Unverified, Reason: fmt.Sprintf(format, args...)}
	}
	const operator = "the operator of the service answers for it: commands run in a sandbox of theirs"
	facets := map[sandbox.Facet]sandbox.FacetReport{}
	for _, facet := range sandbox.Facets {
		facets[facet] = vouched(operator)
	}
	facets[sandbox.FileWrite] = vouched("%s; %s", operator, map[string]string{
		WorkspaceNone:   "in it a command can change every file, and none of this machine is there",
		WorkspaceUpload: "in it a command can change every file, the copy of the workspace included, and what it changes stays there",
		WorkspaceMount:  c.mounted(mode),
	}[c.Workspace])
	facets[sandbox.FileRead] = vouched("%s; %s", operator, map[string]string{
		WorkspaceNone:   "no file of this machine is there",
		WorkspaceUpload: "of this machine only a copy of the workspace is there, without what is hidden",
		WorkspaceMount:  "of this machine only the workspace is there",
	}[c.Workspace])
	switch {
	case network:
		facets[sandbox.Network] = sandbox.FacetReport{State: sandbox.Open, Reason: "it is granted: the service was asked to let commands reach what it reaches"}
	case c.API == APIRun:
		facets[sandbox.Network] = vouched("%s; this interface has no way to ask for none", operator)
	default:
		facets[sandbox.Network] = vouched("%s; it was asked to refuse every connection", operator)
	}
	return facets
}

func (c Config) mounted(mode sandbox.Mode) string {
	if mode == sandbox.WorkspaceWrite {
		return "it was asked to mount the workspace, and read-only in it what programs outside run or believe, as far as that exists; what does not can be made, and is listed"
	}
	return "it was asked to mount the workspace read-only"
}

// facts are what is known of a run before it began.
func (p *Provider) facts(policy sandbox.Policy) sandbox.Facts {
	facts := sandbox.Facts{Mode: policy.Mode, Provider: p.Name(), Layers: []string{p.layer()}, Facets: p.config.facets(policy.Mode, policy.Network), Enforcement: sandbox.EnforcementPartial}
	for _, resource := range sandbox.Resources {
		facts.Limits = append(facts.Limits, sandbox.LimitReport{Resource: resource, State: sandbox.Open, Reason: noLimits})
	}
	return facts
}

// layer names what stands between a command and this machine.
func (p *Provider) layer() string { return "remote sandbox at " + p.base.Host }

// manner says how output and changes come back, for people.
func (c Config) manner() string {
	output := "stdout and stderr come apart and as lines: a missing last line end is added, bytes that are no UTF-8 are replaced, the order between the two is not kept"
	switch {
	case c.API == APIRun:
		output = "output comes when a command has ended, and nothing ends one before it does"
	case c.Output == OutputBytes:
		output = "output comes byte for byte, with stderr in stdout"
	}
	files := map[string]string{
		WorkspaceNone:   "commands see an empty workspace folder",
		WorkspaceUpload: "commands see a copy of the workspace, made when their session begins; what they change stays there and is not brought back",
		WorkspaceMount:  "commands see the workspace itself",
	}[c.Workspace]
	return "commands run at the service, not on this machine; " + files + "; " + output
}
