package config

import (
	"reflect"
	"slices"

	"github.com/confine-dev/confine/approval/rules"
)

// order says which values of a key allow less than others. It is what layers that
// may only tighten are held to.
type order interface {
	// tighten is what now becomes if a layer that may only tighten wants something.
	// loosens says that part of what it wants would allow more and is left out.
	// now is nil for a key without a value.
	tighten(now, wanted any) (value any, loosens bool)

	// words complete the sentence "It can be tightened by …".
	words() string
}

// fixed is the order of a key that such a layer cannot set at all.
type fixed struct{}

func (fixed) tighten(now, wanted any) (any, bool) { return now, !sameValue(now, wanted) }
func (fixed) words() string                       { return "–" }

// ranked lists for a text the texts that allow less.
type ranked map[string][]string

func (r ranked) tighten(now, wanted any) (any, bool) {
	from, to := now.(string), wanted.(string)
	if from == to || slices.Contains(r[from], to) {
		return to, false
	}
	return now, true
}

func (ranked) words() string { return "a narrower value" }

// only is a switch of which one position allows less.
type only bool

func (o only) tighten(now, wanted any) (any, bool) {
	if wanted == bool(o) {
		return wanted, false
	}
	return now, now == bool(o)
}

func (o only) words() string {
	if o {
		return "`true`"
	}
	return "`false`"
}

// fewer is a list that allows less the shorter it is: what both name stays. Paths
// are compared as they are spelled: which of two lies in the other can depend on
// links that a command made.
type fewer struct{}

func (fewer) tighten(now, wanted any) (value any, loosens bool) {
	have, _ := now.([]string)
	kept := []string{}
	for _, path := range wanted.([]string) {
		if slices.Contains(have, path) {
			kept = append(kept, path)
		} else {
			loosens = true
		}
	}
	return kept, loosens
}

func (fewer) words() string { return "naming fewer" }

// more is a list that allows less the longer it is: what either names is in it.
type more struct{}

func (more) tighten(now, wanted any) (any, bool) {
	all, _ := now.([]string)
	all = slices.Clone(all)
	for _, path := range wanted.([]string) {
		if !slices.Contains(all, path) {
			all = append(all, path)
		}
	}
	return all, false
}

func (more) words() string { return "naming more" }

// stricter is a list of rules to which only those that ask or deny can be added.
type stricter struct{}

func (stricter) tighten(now, wanted any) (value any, loosens bool) {
	have, _ := now.(rules.Rules)
	all := slices.Clone(have)
	for _, r := range wanted.(rules.Rules) {
		switch {
		case has(have, r): // a layer that is trusted has had its say before
		case r.Decision == rules.Allow:
			loosens = true
		default:
			all = append(all, r)
		}
	}
	return all, loosens
}

func has(list rules.Rules, r rules.Rule) bool {
	return slices.ContainsFunc(list, func(o rules.Rule) bool { return reflect.DeepEqual(o, r) })
}

func (stricter) words() string { return "adding rules that ask or deny" }

// lower is a number that allows less the lower it is. Without one there is no
// bound, or one that is not known here: then nothing is lower for sure.
type lower struct{ bounded bool }

func (l lower) tighten(now, wanted any) (any, bool) {
	have, ok := now.(int64)
	if ok && wanted.(int64) > have || !ok && l.bounded {
		return now, true
	}
	return wanted, false
}

func (l lower) words() string {
	if l.bounded {
		return "a lower number than one that is set"
	}
	return "a lower number"
}

// sameValue compares two values of one key.
func sameValue(a, b any) bool {
	if list, ok := a.(rules.Rules); ok {
		other, _ := b.(rules.Rules)
		return len(list) == len(other) // they are only added to
	}
	x, isList := a.([]string)
	y, both := b.([]string)
	if isList != both {
		return false
	}
	if isList {
		return slices.Equal(x, y)
	}
	return a == b
}
