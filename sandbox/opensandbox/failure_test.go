package opensandbox

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestRemedies: what a person is told to do fits what went wrong.
func TestRemedies(t *testing.T) {
	answer := func(status int, kind, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
	}
	quiet := func(s *httptest.Server) *httptest.Server {
		s.Config.ErrorLog = log.New(io.Discard, "", 0) // handshakes that fail are meant to
		t.Cleanup(s.Close)
		return s
	}
	plain := func(h http.HandlerFunc) string { return quiet(httptest.NewServer(h)).URL }
	gone := httptest.NewServer(nil)
	gone.Close()
	for name, test := range map[string]struct{ url, want string }{
		"nobody there":          {gone.URL, "check that the service runs"},
		"unknown certificate":   {quiet(httptest.NewTLSServer(answer(200, "application/json", "{}"))).URL, "SSL_CERT_FILE"},
		"no TLS there":          {strings.Replace(plain(answer(200, "application/json", "{}")), "http:", "https:", 1), "speaks TLS"},
		"wrong key":             {plain(answer(401, "application/json", "{}")), "sandbox_api_key"},
		"not allowed":           {plain(answer(403, "application/json", "{}")), "sandbox_api_key"},
		"something refused":     {plain(answer(400, "application/json", "{}")), "the image"},
		"no such call":          {plain(answer(404, "application/json", "{}")), "sandbox_url and sandbox_api"},
		"no room":               {plain(answer(429, "application/json", "{}")), "room for no more"},
		"it failed":             {plain(answer(500, "application/json", "{}")), "try again"},
		"elsewhere":             {plain(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/x", http.StatusTemporaryRedirect) }), "the address that the service has"},
		"a page":                {plain(answer(200, "text/html", "<html>")), "sandbox_url and sandbox_api"},
		"another kind of thing": {plain(answer(200, "application/json", "[]")), "sandbox_url and sandbox_api"},
		"a port of ours":        {plain(answer(200, "application/json", `{"endpoint":"127.0.0.1:1/box"}`)), "server.eip"},
	} {
		p, err := New(Config{URL: test.url, Retry: 1})
		if err != nil {
			t.Fatal(err)
		}
		_, f := p.lifecycle.endpoint(t.Context(), "id")
		if f == nil || !strings.Contains(strings.Join(f.remedies(), "\n"), test.want) {
			t.Errorf("%s: %+v, want a remedy with %q", name, f, test.want)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}
