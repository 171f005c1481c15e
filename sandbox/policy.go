package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Policy is what one command may do. It is resolved once per run from declared
// roots, never from the command's working directory, and not changed after.
type Policy struct {
	Mode Mode

	// Roots are the folders that stay writable in workspace-write mode. In
	// read-only mode they only say what must be visible.
	Roots []*Root

	// Protected are paths below a root that stay read-only. One that does not
	// exist stays absent. A path that is granted in Writable is not protected.
	Protected []string

	// Lifted are paths that were taken out of Protected because making them was
	// granted: nothing is said of them after the run. They do not exist yet, or
	// they would be in Writable.
	Lifted []string

	// Gaps says why there may be more to protect than Protected lists; empty if
	// there is not. It is no part of what is allowed.
	Gaps string

	// Unreadable are paths that cannot be read at all.
	Unreadable []string

	// Writable are files and folders that were granted one by one: they can be
	// written in every confined mode, whatever Protected says of them.
	Writable []*Root

	// Readable are files and folders that were granted one by one: they can be
	// read although they would be hidden or are listed in Unreadable.
	Readable []*Root

	// Network grants the host's network. Loopback of the run's own session
	// works without it.
	Network bool

	// Limits bound what the command can use up.
	Limits Limits

	// Skipped are extra roots that were configured but do not exist.
	Skipped []string
}

// policyForm is the canonical form that Hash digests. Field order is part of it.
type policyForm struct {
	Mode       Mode     `json:"mode"`
	Roots      []string `json:"roots"`
	Protected  []string `json:"protected"`
	Unreadable []string `json:"unreadable"`
	Writable   []string `json:"writable,omitempty"`
	Readable   []string `json:"readable,omitempty"`
	Network    bool     `json:"network"`
	Limits     Limits   `json:"limits,omitzero"`
}

func (p Policy) form() policyForm {
	return policyForm{
		Mode: p.Mode, Network: p.Network, Limits: p.Limits,
		Roots: identities(p.Roots), Protected: canonicalSet(p.Protected), Unreadable: canonicalSet(p.Unreadable),
		Writable: identities(p.Writable), Readable: identities(p.Readable),
	}
}

func identities(roots []*Root) []string {
	set := make([]string, 0, len(roots))
	for _, r := range roots {
		set = append(set, r.identity())
	}
	return canonicalSet(set)
}

// canonicalSet sorts and drops what is there twice. A path that is not UTF-8 is
// quoted, because JSON would make all such paths look the same.
func canonicalSet(in []string) []string {
	out := make([]string, 0, len(in))
	for _, s := range in {
		if !utf8.ValidString(s) {
			s = strconv.QuoteToASCII(s)
		}
		out = append(out, s)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Hash identifies the policy: equal hashes mean that the same is allowed on
// the same folders (device and inode included). It is a hexadecimal SHA-256.
func (p Policy) Hash() string {
	data, err := json.Marshal(p.form())
	if err != nil {
		panic(fmt.Sprintf("sandbox: a policy always marshals: %v", err))
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// Equal reports whether both policies allow the same.
func (p Policy) Equal(o Policy) bool { return p.Hash() == o.Hash() }

// String is the policy in one line, for people and logs: + writable, - read-only
// below a writable folder, ! unreadable, ? readable although hidden.
func (p Policy) String() string {
	var b strings.Builder
	b.WriteString(string(p.Mode))
	if p.Mode == WorkspaceWrite {
		for _, r := range p.Roots {
			fmt.Fprintf(&b, " +%q", r.Path)
		}
	}
	for _, path := range p.Protected {
		fmt.Fprintf(&b, " -%q", path)
	}
	for _, r := range p.Writable {
		fmt.Fprintf(&b, " +%q", r.Path)
	}
	for _, r := range p.Readable {
		fmt.Fprintf(&b, " ?%q", r.Path)
	}
	for _, path := range p.Unreadable {
		fmt.Fprintf(&b, " !%q", path)
	}
	if p.Network {
		b.WriteString(" +network")
	}
	if limits := p.Limits.String(); limits != "" {
		fmt.Fprintf(&b, " (at most: %s)", limits)
	}
	return b.String()
}

// RootPaths lists the paths of the roots in declared order.
func (p Policy) RootPaths() []string {
	paths := make([]string, 0, len(p.Roots))
	for _, r := range p.Roots {
		paths = append(paths, r.Path)
	}
	return paths
}
