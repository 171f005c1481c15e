package seatbelt

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/confine-dev/confine/sandbox"
)

// Session is what a profile has to know besides the policy. All paths are absolute.
type Session struct {
	// Own are folders that a command can write in every confined mode: for temporary
	// files and caches. They may lie in State.
	Own []string

	// State are confine's own folders, closed to commands.
	State []string

	// Absent are those of the policy's protected paths that do not exist, in folders
	// that do.
	Absent []string
}

// Profile is what sandbox-exec needs to know.
type Profile struct {
	Text   string
	Params []Param // each is named in Text
}

// Param gives a name of the text its path.
type Param struct{ Name, Value string }

// maxParams bounds a profile: a policy is larger only by mistake.
const maxParams = 8192

// Build writes the profile for a confined mode. The error names a path that no rule
// can speak of.
func Build(p sandbox.Policy, s Session) (Profile, error) {
	if !p.Mode.Confined() {
		return Profile{}, fmt.Errorf("mode %s has no profile", p.Mode)
	}
	b := &builder{names: map[string]string{}, session: s}
	rules := base()
	rules = append(rules, b.files(p)...)
	rules = append(rules, devices()...)
	rules = append(rules, b.sockets(p)...)
	if p.Network {
		rules = append(rules, network()...)
	}
	if b.err == nil && len(b.params) > maxParams {
		b.err = fmt.Errorf("the policy speaks of %d paths, more than %d", len(b.params), maxParams)
	}
	if b.err != nil {
		return Profile{}, b.err
	}
	var text strings.Builder
	text.WriteString("(version 1)\n")
	for _, r := range rules {
		text.WriteString(r.String() + "\n")
	}
	return Profile{text.String(), b.params}, nil
}

// builder collects the parameters of a profile.
type builder struct {
	session Session
	names   map[string]string // of values
	params  []Param
	err     error // the first
}

// param stands for a path in the text.
func (b *builder) param(value string) form {
	name, known := b.names[value]
	if !known {
		name = "P" + strconv.Itoa(len(b.params))
		b.names[value] = name
		b.params = append(b.params, Param{name, value})
	}
	return list("param", text(name))
}

// filter is one about a path.
func (b *builder) filter(kind, name string) form {
	if b.err == nil && (!path.IsAbs(name) || name == "/" || strings.ContainsRune(name, 0)) {
		b.err = fmt.Errorf("a profile cannot speak of the path %q: it must be absolute and not the whole file system", name)
	}
	return list(kind, b.param(name))
}

func (b *builder) filters(kind string, names []string) []form {
	forms := make([]form, 0, len(names))
	for _, name := range names {
		forms = append(forms, b.filter(kind, name))
	}
	return forms
}

// files decides about files: what can be read and written is what the innermost
// place around it says.
func (b *builder) files(p sandbox.Policy) []rule {
	readable, writable := reading(p, b.session), writing(p, b.session)
	rules := append([]rule{allow("file-read*")}, b.inPlaces(readable, "file-read* process-exec")...)
	if folders := passages(readable); len(folders) > 0 {
		rules = append(rules, allow("file-read-metadata", b.filters("literal", folders)...))
	}
	rules = append(rules, b.inPlaces(writable, "file-write*")...)
	if folders := fixed(writable); len(folders) > 0 {
		rules = append(rules, deny("file-write-unlink", b.filters("literal", folders)...))
	}
	return append(rules, deny("file-write-setugid"))
}

// inPlaces makes a rule of each row of places with one verdict.
func (b *builder) inPlaces(places []place, ops string) (rules []rule) {
	for _, p := range places {
		filters := []form{}
		switch {
		case p.open:
			filters = append(filters, b.filter("subpath", p.path))
		default:
			filters = append(filters, b.filters("subpath", spellings(p.path))...)
			filters = append(filters, b.anyCase(p.path)...)
		}
		if last := len(rules) - 1; last >= 0 && rules[last].allow == p.open {
			rules[last].filters = append(rules[last].filters, filters...)
			continue
		}
		rules = append(rules, rule{p.open, strings.Fields(ops), filters})
	}
	return rules
}

// anyCase closes what does not exist in every spelling. Where the name of a folder
// has bytes that are not known to mean themselves, only the one spelling is closed.
func (b *builder) anyCase(name string) []form {
	if !slices.ContainsFunc(b.session.Absent, func(absent string) bool { return canonical(absent) == name }) {
		return nil
	}
	if expression, ok := folded(name); ok {
		return []form{list("regex", b.param(expression))}
	}
	return nil
}

// sockets lets commands talk to each other where they can write. What others listen
// at is elsewhere.
func (b *builder) sockets(p sandbox.Policy) []rule {
	places := slices.Clone(b.session.Own)
	if p.Mode == sandbox.WorkspaceWrite {
		places = append(places, p.RootPaths()...)
	}
	var local, remote []form
	for _, folder := range places {
		in := b.filter("subpath", canonical(folder))
		local, remote = append(local, list("local unix-socket", in)), append(remote, list("remote unix-socket", in))
	}
	if len(places) == 0 {
		return nil
	}
	return []rule{allow("network-bind network-inbound", local...), allow("network-outbound", remote...)}
}
