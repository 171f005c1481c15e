package sandbox

import (
	"slices"
	"testing"
)

func TestParseMode(t *testing.T) {
	for _, s := range []string{"read-only", "workspace-write", "danger-full-access", "external-sandbox"} {
		if m, err := ParseMode(s); err != nil || string(m) != s {
			t.Errorf("ParseMode(%q) = %q, %v", s, m, err)
		}
	}
	for _, s := range []string{"", "Read-Only", "readonly", "read-only ", "none", "workspace_write"} {
		if m, err := ParseMode(s); err == nil || m != "" {
			t.Errorf("ParseMode(%q) = %q, %v; want an error", s, m, err)
		}
	}
}

func TestModeConfined(t *testing.T) {
	for mode, want := range map[Mode]bool{
		"read-only": true, "workspace-write": true, "danger-full-access": false, "external-sandbox": false,
		"": true, "unknown": true, "DANGER-FULL-ACCESS": true,
	} {
		if got := mode.Confined(); got != want {
			t.Errorf("%q.Confined() = %v", mode, got)
		}
	}
}

func TestModeOrder(t *testing.T) {
	wider := map[Mode][]Mode{
		"read-only":          {"workspace-write", "danger-full-access"},
		"workspace-write":    {"danger-full-access"},
		"danger-full-access": nil,
		"external-sandbox":   nil,
		"":                   nil,
		"unknown":            nil,
	}
	for mode, want := range wider {
		if got := mode.WiderModes(); !slices.Equal(got, want) {
			t.Errorf("%q.WiderModes() = %q, want %q", mode, got, want)
		}
		for other := range wider {
			if got := other.WiderThan(mode); got != slices.Contains(want, other) {
				t.Errorf("%q.WiderThan(%q) = %v", other, mode, got)
			}
		}
	}
}
