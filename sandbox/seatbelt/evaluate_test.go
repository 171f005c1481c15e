package seatbelt

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// operation is something that a program does, as the system asks a profile about it.
type operation struct {
	name string // without a wildcard

	path       string // of the file, or of the socket that is connected to
	socket     string // path of a unix socket at the end that the filter names
	ip         string // host:port at that end
	service    string // global-name, sysctl-name or ipc-posix-name
	domain     string // of a socket
	protocol   string
	same       bool     // its target is in the same sandbox
	extensions []string // that the system gave the process for this file
}

// operations are all that a profile of ours may name: those that the system's own
// profiles name, too. One that the system does not know makes a profile invalid.
var operations = strings.Fields(`default
	file-read* file-read-data file-read-metadata file-write* file-write-data file-write-unlink file-write-setugid file-ioctl
	process-exec process-fork process-info* signal mach-priv-task-port mach-lookup nvram* sysctl-read sysctl-write user-preference-read
	ipc-posix-sem ipc-posix-shm-read* ipc-posix-shm-write* pseudo-tty system-socket network-outbound network-inbound network-bind`)

// undefaulted are operations that "(deny default)" of version 1 leaves open, as the
// profiles show in which the system denies them besides.
var undefaulted = []string{"process-info", "nvram", "iokit-get-properties", "file-map-executable", "dynamic-code-generation"}

// evaluator decides as the system does: of the rules that match, the last one counts.
type evaluator struct {
	rules  []node
	params map[string]string
}

// load reads a profile and checks that it is one.
func load(p Profile) (*evaluator, error) {
	all, err := parse(p.Text)
	if err != nil {
		return nil, err
	}
	if len(all) < 2 || all[0].String() != "(version 1)" || all[1].String() != "(deny default)" {
		return nil, fmt.Errorf("the profile does not begin with its version and a denial of everything")
	}
	e := &evaluator{rules: all[1:], params: map[string]string{}}
	for _, param := range p.Params {
		if _, twice := e.params[param.Name]; twice {
			return nil, fmt.Errorf("parameter %s is given twice", param.Name)
		}
		e.params[param.Name] = param.Value
	}
	return e, e.check()
}

// check evaluates every filter once: the system refuses a profile with a filter or
// an operation that it does not know, or with a parameter that is not given. One
// that is given and not named is a rule that was lost.
func (e *evaluator) check() error {
	for _, r := range e.rules {
		ops, filters, err := e.split(r)
		if err != nil {
			return err
		}
		for _, op := range ops {
			if !slices.Contains(operations, op) {
				return fmt.Errorf("%s: unknown operation %q", r, op)
			}
		}
		for _, f := range filters {
			if _, err := e.matches(f, operation{}); err != nil {
				return fmt.Errorf("%s: %w", r, err)
			}
		}
	}
	text := fmt.Sprint(e.rules)
	for name := range e.params {
		if !strings.Contains(text, "(param "+name+")") {
			return fmt.Errorf("parameter %s is not used", name)
		}
	}
	return nil
}

// split takes a rule apart.
func (e *evaluator) split(r node) (ops []string, filters []node, err error) {
	if r.head() != "allow" && r.head() != "deny" {
		return nil, nil, fmt.Errorf("%s is not a rule", r)
	}
	for i, n := range r.list[1:] {
		if n.isList || n.isText {
			filters = r.list[1+i:]
			break
		}
		ops = append(ops, n.atom)
	}
	if len(ops) == 0 {
		return nil, nil, fmt.Errorf("%s is about nothing", r)
	}
	return ops, filters, nil
}

// allows says what the profile says to an operation.
func (e *evaluator) allows(o operation) bool {
	family, _, _ := strings.Cut(o.name, "*")
	allowed := slices.ContainsFunc(undefaulted, func(u string) bool { return strings.HasPrefix(family, u) })
	for _, r := range e.rules {
		ops, filters, err := e.split(r)
		if err != nil {
			panic(err)
		}
		about := slices.ContainsFunc(ops, func(op string) bool {
			prefix, wild := strings.CutSuffix(op, "*")
			return op == o.name || wild && strings.HasPrefix(o.name, prefix)
		})
		hit := len(filters) == 0 || slices.ContainsFunc(filters, func(f node) bool {
			ok, err := e.matches(f, o)
			if err != nil {
				panic(err)
			}
			return ok
		})
		if about && hit {
			allowed = r.head() == "allow"
		}
	}
	return allowed
}

// value is a string, or the parameter that stands for one.
func (e *evaluator) value(n node) (string, error) {
	switch {
	case n.isText:
		return n.atom, nil
	case n.head() == "param" && len(n.list) == 2 && n.list[1].isText:
		v, given := e.params[n.list[1].atom]
		if !given {
			return "", fmt.Errorf("parameter %s is not given", n.list[1].atom)
		}
		return v, nil
	}
	return "", fmt.Errorf("%s is not a string", n)
}

func (e *evaluator) matches(f node, o operation) (bool, error) {
	switch f.head() {
	case "require-all":
		all := true
		for _, inner := range f.list[1:] {
			ok, err := e.matches(inner, o)
			if err != nil {
				return false, err
			}
			all = all && ok
		}
		return all, nil
	case "target":
		return o.same, only(f, "same-sandbox")
	case "socket-domain":
		return o.domain == f.list[1].atom, only(f, "AF_UNIX", "AF_ROUTE", "AF_SYSTEM")
	case "socket-protocol":
		return o.protocol == f.list[1].atom, only(f, "2")
	case "local", "remote":
		return e.end(f, o)
	}
	if len(f.list) != 2 {
		return false, fmt.Errorf("%s has not one value", f)
	}
	want, err := e.value(f.list[1])
	if err != nil {
		return false, err
	}
	return match(f.head(), want, o)
}

// match is about filters with one string.
func match(filter, want string, o operation) (bool, error) {
	switch filter {
	case "literal":
		return o.path == want, nil
	case "subpath":
		return o.path == want || strings.HasPrefix(o.path, want+"/"), nil
	case "regex", "ipc-posix-name-regex":
		expression, err := regexp.Compile(want)
		if err != nil {
			return false, err
		}
		subject := o.path
		if filter != "regex" {
			subject = o.service
		}
		return subject != "" && expression.MatchString(subject), nil
	case "extension":
		return slices.Contains(o.extensions, want), nil
	case "global-name", "sysctl-name", "ipc-posix-name":
		return o.service == want, nil
	case "sysctl-name-prefix":
		return strings.HasPrefix(o.service, want), nil
	}
	return false, fmt.Errorf("unknown filter %q", filter)
}

// end is about one end of a socket.
func (e *evaluator) end(f node, o operation) (bool, error) {
	if len(f.list) != 3 {
		return false, fmt.Errorf("%s has not two values", f)
	}
	switch kind := f.list[1].atom; kind {
	case "ip":
		want, err := e.value(f.list[2])
		if err == nil && want != "*:*" {
			err = fmt.Errorf("address %q is not one that is understood here", want)
		}
		return o.ip != "", err
	case "unix-socket":
		return e.matches(f.list[2], operation{path: o.socket})
	default:
		return false, fmt.Errorf("unknown kind of address %q", kind)
	}
}

// only says that a filter has one symbol of a few.
func only(f node, values ...string) error {
	if len(f.list) != 2 || f.list[1].isText || !slices.Contains(values, f.list[1].atom) {
		return fmt.Errorf("%s is not one of %v", f, values)
	}
	return nil
}
