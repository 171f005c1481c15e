package harden_test

import (
	"encoding/json"
	"testing"

	"github.com/confine-dev/confine/sandbox/harden"
)

// TestPrecedence: the variable beats the mode in both directions, an empty one is
// none, and a mistake in it protects.
func TestPrecedence(t *testing.T) {
	for _, test := range []struct {
		fullAccess bool
		variable   string
		mayGain    bool
		source     string
	}{
		{false, "", false, "default"},
		{true, "", true, `sandbox_mode = "danger-full-access"`},
		{true, " \t", true, `sandbox_mode = "danger-full-access"`},
		{false, " ", false, "default"},
		{true, "1", false, "CONFINE_NO_NEW_PRIVS"},
		{true, "yes", false, "CONFINE_NO_NEW_PRIVS"},
		{true, "false-ish", false, "CONFINE_NO_NEW_PRIVS"},
		{true, "0x0", false, "CONFINE_NO_NEW_PRIVS"},
		{false, "0", true, "CONFINE_NO_NEW_PRIVS"},
		{false, "false", true, "CONFINE_NO_NEW_PRIVS"},
		{false, " OFF ", true, "CONFINE_NO_NEW_PRIVS"},
		{false, "No", true, "CONFINE_NO_NEW_PRIVS"},
		{false, "Disabled", true, "CONFINE_NO_NEW_PRIVS"},
	} {
		mayGain, source := harden.Privileges(test.fullAccess, test.variable)
		if mayGain != test.mayGain || source != test.source {
			t.Errorf("full access %v, variable %q: got %v by %s, want %v by %s",
				test.fullAccess, test.variable, mayGain, source, test.mayGain, test.source)
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
