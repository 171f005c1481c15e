package opensandbox

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
)

// Limits of what is read of answers.
const (
	maxAnswer  = 1 << 20 // of any that is read as a whole
	maxExcerpt = 200     // of one, in an error
	maxWait    = 10 * time.Second
	tries      = 3 // of a call that may be made again
)

// service sends requests. Redirections are not followed, and keys go to the one host
// that they are for.
type service struct {
	config Config
	kept   *http.Client // keeps connections: for calls that may be made again
	fresh  *http.Client // a connection per call: whether it was sent is then known

	mu      sync.Mutex // guards what follows
	secrets []string   // what is never shown; long ones first, as one can be in another
}

func newService(c Config) *service {
	client := func(keep bool) *http.Client {
		return &http.Client{
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			Transport: &http.Transport{
				Proxy: func(r *http.Request) (*url.URL, error) {
					if r.URL.Scheme != "https" {
						return nil, nil // it would see what TLS is missing for
					}
					return http.ProxyFromEnvironment(r)
				},
				DialContext:            (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
				TLSHandshakeTimeout:    10 * time.Second,
				DisableKeepAlives:      !keep,
				DisableCompression:     true,
				MaxIdleConnsPerHost:    8,
				IdleConnTimeout:        30 * time.Second,
				MaxResponseHeaderBytes: 64 << 10,
			},
		}
	}
	s := &service{config: c, kept: client(true), fresh: client(false)}
	s.hide(c.APIKey)
	return s
}

func (s *service) close() { s.kept.CloseIdleConnections() }

// hide notes a text that must not be shown.
func (s *service) hide(secret string) {
	if len(secret) < 4 {
		return // it is in everything
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	at, known := slices.BinarySearchFunc(s.secrets, secret, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
	})
	if !known {
		s.secrets = slices.Insert(s.secrets, at, secret)
	}
}

// shown is a text of the service as it may stand in an error: without secrets, on one
// line and short.
func (s *service) shown(text string) string {
	s.mu.Lock()
	for _, secret := range s.secrets {
		text = strings.ReplaceAll(text, secret, "[key]")
	}
	s.mu.Unlock()
	var b strings.Builder
	for _, r := range strings.Join(strings.Fields(text), " ") {
		if b.Len() >= maxExcerpt {
			return b.String() + "…"
		}
		if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			fmt.Fprintf(&b, "\\u%04x", r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// peer is one host and what each request to it carries.
type peer struct {
	base    *url.URL
	headers map[string]string
}

// call is one request.
type call struct {
	method, path string
	query        url.Values
	want         int       // the status of a success, if it is one only
	json         any       // body, unless it is nil
	body         io.Reader // body of another type
	bodyType     string
	patience     time.Duration // how long the answer is waited for; 0 is Config.Patience
}

// open sends a request and returns its answer if it is a success. The body must be
// closed.
func (s *service) open(ctx context.Context, client *http.Client, p peer, c call) (*http.Response, *failure) {
	body := c.body
	if c.json != nil {
		data, err := json.Marshal(c.json)
		if err != nil {
			return nil, &failure{text: fmt.Sprintf("%s %s: %v", c.method, c.path, err)}
		}
		body, c.bodyType = bytes.NewReader(data), "application/json"
	}
	var sent atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { sent.Store(true) }})
	target := *p.base
	target.Path, target.RawPath = strings.TrimRight(target.Path, "/")+c.path, ""
	target.RawQuery = c.query.Encode()
	request, err := http.NewRequestWithContext(ctx, c.method, target.String(), body)
	if err != nil {
		return nil, &failure{text: fmt.Sprintf("%s %s: the address cannot be used", c.method, c.path)}
	}
	for name, value := range p.headers {
		request.Header.Set(name, value)
	}
	if body != nil {
		request.Header.Set("Content-Type", c.bodyType)
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, &failure{sent: sent.Load(), text: fmt.Sprintf("%s %s at %s: %s", c.method, c.path, p.base.Host, s.shown(reason(ctx, err))), remedy: remedyOf(err)}
	}
	if response.StatusCode/100 == 2 {
		return response, nil
	}
	defer response.Body.Close()
	return nil, s.refused(ctx, p, c, response)
}

// ask makes one call that is answered at once, and reads the answer into v, which may
// be nil.
func (s *service) ask(ctx context.Context, client *http.Client, p peer, c call, v any) *failure {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(c.patience, s.config.Patience))
	defer cancel()
	response, failed := s.open(ctx, client, p, c)
	if failed != nil {
		return failed
	}
	defer response.Body.Close()
	bad := func(why string) *failure {
		return &failure{sent: true, text: fmt.Sprintf("%s %s at %s: the answer cannot be used: %s", c.method, c.path, p.base.Host, why)}
	}
	strange := func(why string) *failure { f := bad(why); f.remedy = wrongService; return f }
	if c.want != 0 && response.StatusCode != c.want {
		return strange(fmt.Sprintf("its status is %d and not %d", response.StatusCode, c.want))
	}
	if strings.HasPrefix(response.Header.Get("Content-Type"), "text/html") {
		return strange("it is a page, as of something on the way to the service") // and says nothing of what was done
	}
	if v == nil {
		return nil // that it was done is all there is to know
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil:
		return bad(s.shown(reason(ctx, err)))
	case len(data) > maxAnswer:
		return bad("it is too long")
	}
	if err := json.Unmarshal(data, v); err != nil {
		return strange("it is not what was asked for: " + s.shown(string(data)))
	}
	return nil
}

// insist makes a call that may be made again until it is answered, a few times.
func (s *service) insist(ctx context.Context, p peer, c call, v any) *failure {
	for try := 0; ; try++ {
		failed := s.ask(ctx, s.kept, p, c, v)
		if failed == nil || !failed.passing() || try+1 >= tries || !s.pause(ctx, max(s.config.Retry<<try, failed.wait)) {
			return failed
		}
	}
}

// pause waits, not for long; false if there is no reason to any more.
func (s *service) pause(ctx context.Context, long time.Duration) bool {
	timer := time.NewTimer(min(long, maxWait))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
