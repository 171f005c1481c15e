package harden_test

import (
	"encoding/json"
	"testing"

	"github.com/confine-dev/confine/sandbox/harden"
)

// TestVariable: an empty one is none, and a mistake in it protects.
func TestVariable(t *testing.T) {
	const no, yes, none = "no", "yes", "none"
	for value, want := range map[string]string{
		"": none, " \t": none,
		"0": no, "false": no, "No": no, " OFF ": no, "Disabled": no,
		"1": yes, "true": yes, "yes": yes, "false-ish": yes, "0x0": yes, "00": yes, "n": yes,
	} {
		got := none
		if wanted, given := harden.ParseNoNewPrivs(value); given && wanted {
			got = yes
		} else if given {
			got = no
		}
		if got != want {
			t.Errorf("%q means %s, want %s", value, got, want)
		}
	}
}

// TestPrecedence: what is set beats the mode, in both directions.
func TestPrecedence(t *testing.T) {
	yes, no := true, false
	for _, test := range []struct {
		fullAccess bool
		set        *bool
		mayGain    bool
		source     string
	}{
		{false, nil, false, "default"},
		{true, nil, true, `sandbox_mode = "danger-full-access"`},
		{true, &yes, false, "somewhere"},
		{false, &yes, false, "somewhere"},
		{true, &no, true, "somewhere"},
		{false, &no, true, "somewhere"},
	} {
		mayGain, source := harden.Privileges(test.fullAccess, test.set, "somewhere")
		if mayGain != test.mayGain || source != test.source {
			t.Errorf("%+v: got %v by %s", test, mayGain, source)
		}
	}
}

func TestStateNames(t *testing.T) {
	value, limit := 1, int64(-1)
	data, err := json.Marshal(harden.State{
		Dumpable:  harden.Control[int]{Value: &value, Source: "default", Error: "why"},
		CoreLimit: harden.Control[int64]{Value: &limit, Wanted: &limit, Source: "default"},
	})
	const want = `{"dumpable":{"value":1,"wanted":null,"source":"default","error":"why"},` +
		`"noNewPrivs":{"value":null,"wanted":null,"source":""},` +
		`"coreLimit":{"value":-1,"wanted":-1,"source":"default"}}`
	if err != nil || string(data) != want {
		t.Errorf("got %s, %v\nwant %s", data, err, want)
	}
}
