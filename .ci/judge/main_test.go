package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	passing = `{"Action":"pass","Package":"github.com/confine-dev/confine/rpc","Test":"TestA"}`
	skipped = `{"Action":"output","Package":"github.com/confine-dev/confine/rpc","Test":"TestB","Output":"no kernel\n"}
{"Action":"skip","Package":"github.com/confine-dev/confine/rpc","Test":"TestB"}`
	failing  = `{"Action":"fail","Package":"github.com/confine-dev/confine/rpc","Test":"TestC"}`
	crashed  = `{"Action":"fail","Package":"github.com/confine-dev/confine/rpc"}`
	unbuilt  = `{"Action":"build-fail","ImportPath":"github.com/confine-dev/confine/rpc [github.com/confine-dev/confine/rpc.test]"}`
	begun    = `{"Action":"run","Package":"github.com/confine-dev/confine/rpc","Test":"TestD"}`
	packages = `{"Action":"pass","Package":"github.com/confine-dev/confine/rpc"}`
)

func TestVerdict(t *testing.T) {
	for name, c := range map[string]struct {
		events, allowed string
		strict, want    bool
	}{
		"passed":               {events: passing, strict: true, want: true},
		"nothing ran":          {events: packages, want: false},
		"failed":               {events: passing + "\n" + failing, want: false},
		"crashed":              {events: passing + "\n" + crashed, want: false},
		"did not end":          {events: passing + "\n" + begun, want: false},
		"did not build":        {events: passing + "\n" + unbuilt, want: false},
		"skipped":              {events: passing + "\n" + skipped, want: true},
		"skipped on CI":        {events: passing + "\n" + skipped, strict: true, want: false},
		"skipped and allowed":  {events: passing + "\n" + skipped, allowed: "race rpc TestB no kernel here", strict: true, want: true},
		"allowed by a pattern": {events: passing + "\n" + skipped, allowed: "* * Test* anything", strict: true, want: true},
		"allowed elsewhere":    {events: passing + "\n" + skipped, allowed: "unit rpc TestB no kernel here", strict: true, want: false},
		"another one allowed":  {events: passing + "\n" + skipped, allowed: "race rpc TestA no kernel here", strict: true, want: false},
		"another package":      {events: passing + "\n" + skipped, allowed: "race rpc/server TestB no kernel here", strict: true, want: false},
		"nothing but skips":    {events: skipped, allowed: "* * * anything", want: false},
		"failed and allowed":   {events: passing + "\n" + failing, allowed: "* * * anything", want: false},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "skips")
			if err := os.WriteFile(file, []byte("# comment\n\n"+c.allowed+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			allowed, err := readAllowed(file, "race")
			if err != nil {
				t.Fatal(err)
			}
			events, err := read(strings.NewReader(c.events))
			if err != nil {
				t.Fatal(err)
			}
			if got := events.report(io.Discard, allowed, c.strict); got != c.want {
				t.Errorf("verdict %v, want %v", got, c.want)
			}
		})
	}
}

func TestAllowedNeedsReason(t *testing.T) {
	file := filepath.Join(t.TempDir(), "skips")
	if err := os.WriteFile(file, []byte("unit rpc TestB\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readAllowed(file, "unit"); err == nil {
		t.Error("a skip without a reason was accepted")
	}
}
