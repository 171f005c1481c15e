package opensandbox

import (
	"strings"
	"testing"
)

// TestAddresses: without TLS nothing but this machine is reached, unless a host is named.
func TestAddresses(t *testing.T) {
	for url, wanted := range map[string]string{ // what the error says; empty for none
		"https://host.test":              "",
		"https://host.test:8443/base/v1": "",
		"http://localhost:8080":          "",
		"http://LOCALHOST/":              "",
		"http://127.0.0.1:8080/":         "",
		"http://127.9.9.9":               "",
		"http://[::1]:8080":              "",
		"http://plain.test":              "",
		"":                               "set sandbox_url",
		"http://host.test":               "use https",
		"http://localhost.test":          "use https",
		"http://127.0.0.1.test":          "use https",
		"http://0.0.0.0":                 "use https",
		"http://10.0.0.1":                "use https",
		"http://[fe80::1]":               "use https",
		"http://plain.test.evil.test":    "use https",
		"ftp://host.test":                "must be an address",
		"host.test":                      "must be an address",
		"https://":                       "must be an address",
		"https://me:pw@host.test":        "must be an address",
		"https://host.test/?a=b":         "must be an address",
		"https://host.test/#a":           "must be an address",
	} {
		_, err := New(Config{URL: url, PlainHTTP: []string{"plain.test"}})
		if wanted == "" && err != nil || wanted != "" && (err == nil || !strings.Contains(err.Error(), wanted)) {
			t.Errorf("%q: %v, want %q", url, err, wanted)
		}
	}
}

// TestChoices: what does not fit together is refused before anything is sent.
func TestChoices(t *testing.T) {
	for name, c := range map[string]Config{
		"interface":            {API: "rpc"},
		"workspace":            {Workspace: "copy"},
		"output":               {Output: "text"},
		"processors":           {CPU: "0"},
		"one call with files":  {API: APIRun, Workspace: WorkspaceUpload},
		"one call with bytes":  {API: APIRun, Output: OutputBytes},
		"one call with mounts": {API: APIRun, Workspace: WorkspaceMount},
	} {
		c.URL = "https://host.test"
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), "sandbox_") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestEndpoints: what a service says about where execd is counts only for its own host.
func TestEndpoints(t *testing.T) {
	for _, test := range []struct{ service, endpoint, want string }{
		{"http://127.0.0.1:8080", "127.0.0.1:8080/v1/sandboxes/x/proxy/44772", "http://127.0.0.1:8080/v1/sandboxes/x/proxy/44772"},
		{"http://127.0.0.1:8080", "localhost:8080/a/b", "http://127.0.0.1:8080/a/b"},
		{"http://[::1]:8080", "127.0.0.2:8080/a", "http://[::1]:8080/a"},
		{"http://localhost", "localhost:80/a", "http://localhost/a"},
		{"https://localhost", "localhost:443/a", "https://localhost/a"},
		{"http://127.0.0.1:8080", "127.0.0.1:44772", ""}, // another program of this machine
		{"http://127.0.0.1:8080", "localhost/a", ""},
		{"https://localhost", "localhost:80", ""},
		{"http://127.0.0.1:8080", "host.test:8080", ""},
		{"https://host.test:8080", "host.test:44772", "https://host.test:44772"}, // the service's machine
		{"https://host.test/v1", "HOST.test/v1/sandboxes/x/proxy/44772", "https://HOST.test/v1/sandboxes/x/proxy/44772"},
		{"https://[fd00::1]:8080", "[fd00::1]:9", "https://[fd00::1]:9"},
		{"https://host.test", "evil.test:44772", ""},
		{"https://host.test", "127.0.0.1:44772", ""},
		{"https://host.test", "host.test.evil.test", ""},
		{"https://host.test", "http://host.test", ""},
		{"https://host.test", "me@host.test", ""},
		{"https://host.test", "host.test/../x", ""},
		{"https://host.test", "host.test?x", ""},
		{"https://host.test", "host.test#x", ""},
		{"https://host.test", "host.test:0", ""},
		{"https://host.test", "host.test:99999", ""},
		{"https://host.test", "host.test/%2e%2e", ""},
		{"https://host.test", "host.test/a b", ""},
		{"https://host.test", "host.test\r\nX: y", ""},
		{"https://host.test", "", ""},
		{"https://host.test", "/x", ""},
	} {
		p, err := New(Config{URL: test.service})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if base, fault := p.lifecycle.endpointURL(test.endpoint); fault == "" {
			got = base.String()
		}
		if got != test.want {
			t.Errorf("%s, %q: %q, want %q", test.service, test.endpoint, got, test.want)
		}
	}
}

// TestShown: nothing of a service's text moves a cursor, names a key or fills a screen.
func TestShown(t *testing.T) {
	s := newService(Config{APIKey: "top-secret"})
	for range 2 {
		s.hide("token-1")
		s.hide("token-1-more") // has another one in it
	}
	got := s.shown("a\n\x1b[31mtop-secret\ttoken-1-more\u202e" + strings.Repeat("é", 1000))
	if want := `a \u001b[31m[key] [key]\u202eé`; !strings.HasPrefix(got, want) || len(got) > maxExcerpt+8 {
		t.Errorf("got %q", got)
	}
	if len(s.secrets) != 3 {
		t.Errorf("%d secrets are kept", len(s.secrets))
	}
}
