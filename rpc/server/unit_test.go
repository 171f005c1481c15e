package server

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/confine-dev/confine/rpc"
	"github.com/confine-dev/confine/sandbox"
)

func TestWholeRunes(t *testing.T) {
	a := strings.Repeat("a", chunkBytes)
	for name, test := range map[string]struct {
		data string
		want int
	}{
		"short":                     {"abc", 3},
		"long":                      {a + "b", chunkBytes},
		"whole character at border": {a[3:] + "€" + "b", chunkBytes},
		"character over the border": {a[1:] + "€", chunkBytes - 1},
		"two bytes over":            {a[2:] + "€", chunkBytes - 2},
		"four bytes over":           {a[1:] + "😀", chunkBytes - 1},
		"begun":                     {"x\xe2\x82", 1},
		"only begun":                {"\xf0\x9f\x98", 0},
		"whole":                     {"x€", 4},
		"stray continuation":        {"x\x80", 2},
		"continuations":             {"\x80\x80\x80\x80", 4},
		"impossible":                {"x\xff", 2},
		"ended wrongly":             {"\xe2\x28", 2},
	} {
		if got := wholeRunes([]byte(test.data)); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
}

func TestFilePath(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the paths here are not those of Windows")
	}
	for uri, want := range map[string]string{
		"file:///home/me/project":           "/home/me/project",
		"file://localhost/home":             "/home",
		"file:///a%20b/%E2%82%AC/%25":       "/a b/€/%",
		"file:/short":                       "/short",
		"FILE:///upper":                     "/upper",
		"file://host/share":                 "",
		"file:relative":                     "",
		"file://":                           "",
		"file:///a?query":                   "",
		"file:///a#fragment":                "",
		"file:///a%00b":                     "",
		"http:///a":                         "",
		"vscode-remote://ssh-remote+x/home": "",
		"/home/me":                          "",
		"":                                  "",
		"file:///%zz":                       "",
	} {
		got, err := filePath(uri)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v; want %q", uri, got, err, want)
		}
	}
}

// TestWireErrorsSurviveWrapping: callers add context on the way up.
func TestWireErrorsSurviveWrapping(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		code int64
	}{
		"invalid params": {invalid("no"), -32602},
		"unavailable":    {&sandbox.UnavailableError{Mode: sandbox.ReadOnly}, -32803},
		"start":          {&sandbox.StartError{Kind: sandbox.ProgramNotFound}, -32803},
		"not recorded":   {&notRecordedError{errors.New("disk full")}, -32803},
		"wire":           {rpc.Errorf(-32600, "no"), -32600},
		"other":          {errors.New("other"), -32603},
	} {
		if got := wireError(fmt.Errorf("doing it: %w", test.err)); got.Code != test.code {
			t.Errorf("%s: code %d, want %d", name, got.Code, test.code)
		}
	}
}

func TestSameToken(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want bool
	}{
		{`"a"`, `"a"`, true}, {`"a"`, `"\u0061"`, true}, {`1`, `1`, true}, {`1`, `1.0`, true},
		{`1`, `"1"`, false}, {`"a"`, `"b"`, false}, {``, ``, false}, {`null`, `null`, false}, {`{}`, `{ }`, false}, {`[1]`, `[ 1]`, false},
	} {
		if got := sameToken([]byte(test.a), []byte(test.b)); got != test.want {
			t.Errorf("%s and %s: %v", test.a, test.b, got)
		}
	}
}

// TestLargeCommandsAreNotHeldForLong: what a model sends must not fill the
// memory of the server.
func TestLargeCommandsAreNotHeldForLong(t *testing.T) {
	g := newRegistry()
	command := strings.Repeat("x", 10<<20)
	for i := range 5 {
		r, err := g.add(t.Context(), plan{id: fmt.Sprint(i), command: command})
		if err != nil {
			t.Fatal(err)
		}
		g.finish(r, ending{})
	}
	for id, want := range map[string]bool{"0": false, "1": false, "2": true, "3": true, "4": true} {
		if _, err := g.find(id); (err == nil) != want {
			t.Errorf("run %s is kept: %v", id, err == nil)
		}
	}
	huge, err := g.add(t.Context(), plan{id: "huge", stdin: strings.Repeat("x", 40<<20)})
	if err != nil {
		t.Fatal(err)
	}
	g.finish(huge, ending{})
	if _, err := g.find("huge"); err != nil || len(g.byID) != 1 {
		t.Errorf("%d runs are kept, want the last one: %v", len(g.byID), err)
	}
}
