package config

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// row is a key with two of its values, as they stand in a file.
type row struct {
	tight, loose string

	// fixed says that an untrusted layer cannot set the key at all. Otherwise both is
	// what holds when one layer says tight and an untrusted one says loose: less than
	// either for a list, and tight if it is empty.
	fixed bool
	both  string
}

// matrix has every key, by hand: what is tighter is not taken from the code.
var matrix = map[string]row{
	"sandbox_mode":        {tight: `"read-only"`, loose: `"workspace-write"`},
	"network_access":      {tight: `false`, loose: `true`},
	"writable_roots":      {tight: `["/opt/a"]`, loose: `["/opt/a","/opt/b"]`},
	"deny_read":           {tight: `["/opt/a","/opt/b"]`, loose: `["/opt/a"]`},
	"deny_read_defaults":  {tight: `true`, loose: `false`},
	"approval_policy":     {tight: `"never"`, loose: `"ask"`},
	"provider":            {tight: `"landlock"`, loose: `"bwrap"`, fixed: true},
	"on_unavailable":      {tight: `"refuse"`, loose: `"run-unconfined"`},
	"prefer_bwrap":        {tight: `false`, loose: `true`, fixed: true},
	"bwrap_path":          {tight: `"/opt/a"`, loose: `"/opt/b"`, fixed: true},
	"bwrap_ro_roots":      {tight: `["/opt/a"]`, loose: `["/opt/b"]`, fixed: true},
	"bwrap_dev_roots":     {tight: `["/dev/a"]`, loose: `["/dev/b"]`, both: `[]`},
	"sandbox_backend":     {tight: `"none"`, loose: `"opensandbox"`, fixed: true},
	"sandbox_url":         {tight: `"https://a.test"`, loose: `"https://b.test"`, fixed: true},
	"sandbox_api_key":     {tight: `"k1"`, loose: `"k2"`, fixed: true},
	"sandbox_api":         {tight: `"lifecycle"`, loose: `"run"`, fixed: true},
	"sandbox_plain_http":  {tight: `[]`, loose: `["a.test"]`, fixed: true},
	"sandbox_image":       {tight: `"a"`, loose: `"b"`, fixed: true},
	"sandbox_cpu":         {tight: `"1"`, loose: `"2"`, fixed: true},
	"sandbox_memory":      {tight: `"1GiB"`, loose: `"2GiB"`, fixed: true},
	"sandbox_workspace":   {tight: `"none"`, loose: `"mount"`, fixed: true},
	"sandbox_upload_size": {tight: `"1MiB"`, loose: `"2MiB"`, fixed: true},
	"sandbox_upload_skip": {tight: `["a","b"]`, loose: `["a"]`, fixed: true},
	"sandbox_output":      {tight: `"lines"`, loose: `"bytes"`, fixed: true},
	"no_new_privs":        {tight: `true`, loose: `false`, fixed: true},
	"exclude_tmpdir":      {tight: `true`, loose: `false`},
	"exclude_slash_tmp":   {tight: `true`, loose: `false`},
	"limits.processes":    {tight: `100`, loose: `200`},
	"limits.memory":       {tight: `"1MiB"`, loose: `"1GiB"`},
	"limits.open_files":   {tight: `100`, loose: `200`},
	"limits.file_size":    {tight: `1024`, loose: `"1MiB"`},
	"limits.tmp_size":     {tight: `"1MiB"`, loose: `"2MiB"`},
}

// moreModes are the pairs of modes besides that of the matrix.
var moreModes = []row{
	{tight: `"read-only"`, loose: `"danger-full-access"`},
	{tight: `"workspace-write"`, loose: `"danger-full-access"`},
	{tight: `"read-only"`, loose: `"external-sandbox"`},
	{tight: `"workspace-write"`, loose: `"external-sandbox"`},
}

// untrusted are the layers that may only tighten.
var untrusted = []string{"editor", "workspace"}

func TestMatrix(t *testing.T) {
	requireUnix(t)
	place := newPlace(t)
	for _, key := range KeyNames() {
		if key == "rules" {
			continue // they add up: rules_test.go
		}
		r, ok := matrix[key]
		if !ok {
			t.Errorf("%s is not in the matrix", key)
			continue
		}
		t.Run(key, func(t *testing.T) { checkRow(t, place, key, r) })
	}
	for _, r := range moreModes {
		t.Run("sandbox_mode "+r.loose, func(t *testing.T) { checkRow(t, place, "sandbox_mode", r) })
	}
}

func checkRow(t *testing.T, place *testPlace, key string, r row) {
	strong := []string{"user", "command line", "managed", "trusted editor"}
	if keyOf(key).Env != "" {
		strong = append(strong, "environment")
	}
	both := r.both
	if both == "" {
		both = r.tight
	}
	for _, layer := range strong {
		for _, value := range []string{r.tight, r.loose} {
			w := place.anew(t)
			origin := w.say(layer, key, value)
			w.expect("only "+layer, key, value, origin)
		}
		for _, weak := range untrusted {
			if layer == "trusted editor" && weak == "editor" {
				continue // there is one editor
			}
			w := place.anew(t)
			strongly := w.say(layer, key, r.tight)
			weakly := w.say(weak, key, r.loose)
			s := w.expect(weak+" loosens "+layer, key, both, "")
			if got := s.Origin(key); both == r.tight && got != strongly && got != strongly+", "+weakly {
				t.Errorf("%s loosens %s: it comes from %s", weak, layer, got)
			}
			if _, adds := keyOf(key).order.(more); !adds {
				w.warned(s, weakly, key)
			}

			w = place.anew(t)
			strongly = w.say(layer, key, r.loose)
			weakly = w.say(weak, key, r.tight)
			switch {
			case r.fixed:
				s := w.expect(weak+" cannot set "+key, key, r.loose, strongly)
				w.warned(s, weakly, key)
			case r.both != "":
				w.expect(weak+" shortens "+layer, key, both, weakly)
			default:
				s := w.expect(weak+" tightens "+layer, key, r.tight, "")
				if got := s.Origin(key); got != weakly && got != strongly+", "+weakly {
					t.Errorf("%s tightens %s: it comes from %s", weak, layer, got)
				}
				for _, warning := range s.Warnings {
					if strings.HasPrefix(warning, weakly) {
						t.Errorf("%s tightens %s with a warning: %s", weak, layer, warning)
					}
				}
			}
		}
	}
	checkOrder(t, place, key, r)
}

// checkOrder: a later layer counts, and nobody gets over the managed file.
func checkOrder(t *testing.T, place *testPlace, key string, r row) {
	order := []string{"user"}
	if keyOf(key).Env != "" {
		order = append(order, "environment")
	}
	order = append(order, "command line")
	w := place.anew(t)
	for i, layer := range order {
		value := []string{r.tight, r.loose}[i%2]
		w.expect("later "+layer, key, value, w.say(layer, key, value))
	}
	w = place.anew(t)
	w.say("user", key, r.loose)
	w.say("trusted editor", key, r.loose)
	w.say("command line", key, r.loose)
	adds := key == "deny_read"
	w.expect("managed is over all", key, or(r.both, r.tight), or(map[bool]string{true: "any"}[r.both != "" || adds], w.say("managed", key, r.tight)))
	if adds {
		w = place.anew(t)
		w.say("user", key, `["/opt/mine"]`)
		w.say("managed", key, `["/opt/theirs"]`)
		w.expect("managed adds", key, `["/opt/mine","/opt/theirs"]`, "any")
	}
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// testPlace is where all layers of a source are.
type testPlace struct {
	t                     *testing.T
	user, managed, folder string
	env                   map[string]string
	named                 map[string]any
	options               json.RawMessage
	trusted               bool
}

func newPlace(t *testing.T) *testPlace {
	t.Helper()
	top := t.TempDir()
	w := &testPlace{user: filepath.Join(top, "user"), managed: filepath.Join(top, "etc", "managed.toml"), folder: filepath.Join(top, "work")}
	for _, dir := range []string{w.user, filepath.Dir(w.managed), filepath.Join(w.folder, ".confine")} {
		must(t, os.MkdirAll(dir, 0o755))
	}
	return w.anew(t)
}

// anew is the place with nothing said.
func (w *testPlace) anew(t *testing.T) *testPlace {
	for _, file := range []string{filepath.Join(w.user, "config.toml"), w.managed, filepath.Join(w.folder, ".confine", "config.toml")} {
		os.Remove(file)
	}
	return &testPlace{t: t, user: w.user, managed: w.managed, folder: w.folder, env: map[string]string{}, named: map[string]any{}}
}

// say sets a key in a layer, alone, and returns the origin that it should have.
func (w *testPlace) say(layer, key, value string) (origin string) {
	w.t.Helper()
	file := func(path string) string {
		must(w.t, os.WriteFile(path, []byte("\n"+key+" = "+value+"\n"), 0o644))
		return path + ":2"
	}
	switch layer {
	case "user":
		return file(filepath.Join(w.user, "config.toml"))
	case "managed":
		return file(w.managed)
	case "workspace":
		return file(filepath.Join(w.folder, ".confine", "config.toml"))
	case "environment":
		w.env[keyOf(key).Env] = strings.Trim(value, `"`)
		return "environment variable " + keyOf(key).Env
	case "command line":
		var raw any
		decoder := json.NewDecoder(strings.NewReader(value))
		decoder.UseNumber()
		must(w.t, decoder.Decode(&raw))
		read, fault := keyOf(key).read(raw)
		if fault != "" {
			w.t.Fatal(fault)
		}
		w.named[key] = read
		return "command line"
	case "trusted editor", "editor":
		w.trusted = layer == "trusted editor"
		w.options = json.RawMessage(fmt.Sprintf("{%q: %s}", key, value))
		return "the editor's initializationOptions"
	}
	w.t.Fatalf("no layer %s", layer)
	return ""
}

// open reads all layers.
func (w *testPlace) open() *Snapshot {
	w.t.Helper()
	s, err := openFor(Options{
		Paths: Paths{ConfigDir: w.user, StateDir: w.user, ManagedFile: w.managed}, Getenv: func(name string) string { return w.env[name] },
		Named: w.named, TrustEditor: w.trusted,
	}, os.Geteuid())
	if err != nil {
		w.t.Fatal(err)
	}
	defer s.Close()
	c := s.Connect(func() {})
	defer c.Close()
	c.SetOptions(w.options)
	c.SetFolders([]string{w.folder})
	if refusal := c.Current().Refusal; refusal != "" {
		w.t.Fatal(refusal)
	}
	return c.Current()
}

// expect compares the value of a key, and where it comes from unless that is empty
// or any.
func (w *testPlace) expect(what, key, value, origin string) *Snapshot {
	w.t.Helper()
	s := w.open()
	var want any
	decoder := json.NewDecoder(strings.NewReader(value))
	decoder.UseNumber()
	must(w.t, decoder.Decode(&want))
	want, fault := keyOf(key).read(want)
	if fault != "" {
		w.t.Fatalf("%s: %s", what, fault)
	}
	for _, v := range s.Values {
		switch {
		case v.Key != key:
		case keyOf(key).Secret:
			if got := s.Settings.Remote.APIKey; got != want || v.Value != "set" {
				w.t.Errorf("%s: got %q, shown as %v", what, got, v.Value)
			}
		case !reflect.DeepEqual(v.Value, want):
			w.t.Errorf("%s: %s is %v, want %v", what, key, v.Value, want)
		}
	}
	if origin != "" && origin != "any" && s.Origin(key) != origin {
		w.t.Errorf("%s: it comes from %s, want %s", what, s.Origin(key), origin)
	}
	return s
}

// warned wants a warning that names a place and a key.
func (w *testPlace) warned(s *Snapshot, origin, key string) {
	w.t.Helper()
	for _, warning := range s.Warnings {
		if strings.HasPrefix(warning, origin+": "+key+" ") {
			return
		}
	}
	w.t.Errorf("nothing warns of %s at %s: %q", key, origin, s.Warnings)
}
