package opensandbox

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The names that the lifecycle API has for things.
const (
	keyHeader = "OPEN-SANDBOX-API-KEY"
	execdPort = "44772"
	label     = "confine" // metadata by which sandboxes of ours are found
)

// lifecycle is the API that makes and ends sandboxes.
type lifecycle struct {
	*service
	at peer
}

func newLifecycle(s *service, base *url.URL) *lifecycle {
	root := *base
	root.Path = strings.TrimSuffix(strings.TrimRight(root.Path, "/"), "/v1") + "/v1"
	headers := map[string]string{}
	if s.config.APIKey != "" {
		headers[keyHeader] = s.config.APIKey
	}
	return &lifecycle{service: s, at: peer{&root, headers}}
}

// creation is the body of a request for a sandbox.
type creation struct {
	Image          image             `json:"image"`
	Entrypoint     []string          `json:"entrypoint"`
	Timeout        int               `json:"timeout"` // seconds
	ResourceLimits map[string]string `json:"resourceLimits"`
	Metadata       map[string]string `json:"metadata"`
	NetworkPolicy  networkPolicy     `json:"networkPolicy"`
	Volumes        []volume          `json:"volumes,omitempty"`
}

type image struct {
	URI string `json:"uri"`
}

type networkPolicy struct {
	DefaultAction string   `json:"defaultAction"`
	Egress        []string `json:"egress"` // rules; there are none
}

// volume is a folder or file of the service's host.
type volume struct {
	Name string `json:"name"`
	Host struct {
		Path string `json:"path"`
	} `json:"host"`
	MountPath string `json:"mountPath"`
	ReadOnly  bool   `json:"readOnly"`
}

// view is what the API shows of a sandbox.
type view struct {
	ID     string `json:"id"`
	Status struct {
		State   string `json:"state"`
		Reason  string `json:"reason"`
		Message string `json:"message"`
	} `json:"status"`
	ExpiresAt time.Time         `json:"expiresAt"`
	Metadata  map[string]string `json:"metadata"`
}

// plainID is what goes into paths.
var plainID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$`)

// create asks for a sandbox; some services answer when it runs. It is asked again only if the service did not hear of
// it, or says when to.
func (l *lifecycle) create(ctx context.Context, c creation) (view, *failure) {
	for try := 0; ; try++ {
		var made view
		failed := l.ask(ctx, l.fresh, l.at, call{method: http.MethodPost, path: "/sandboxes", json: c, patience: l.config.Startup}, &made)
		if failed == nil && !plainID.MatchString(made.ID) {
			failed = &failure{sent: true, text: "the service made a sandbox without an id that can be used"}
		}
		if failed == nil {
			return made, nil
		}
		again := !failed.sent || failed.status == http.StatusTooManyRequests && failed.wait > 0
		if !again || try+1 >= tries || !l.pause(ctx, max(l.config.Retry<<try, failed.wait)) {
			return view{}, failed
		}
	}
}

// get looks at a sandbox.
func (l *lifecycle) get(ctx context.Context, id string) (view, *failure) {
	var seen view
	failed := l.insist(ctx, l.at, call{method: http.MethodGet, path: "/sandboxes/" + id}, &seen)
	if failed == nil && seen.ID != id {
		failed = &failure{sent: true, text: "the service answered about another sandbox than was asked for"}
	}
	return seen, failed
}

// delete ends a sandbox. One that does not exist is none that is left. What is answered
// otherwise than a deletion is counts for nothing until the sandbox is seen to be gone.
func (l *lifecycle) delete(ctx context.Context, id string) *failure {
	failed := l.insist(ctx, l.at, call{method: http.MethodDelete, path: "/sandboxes/" + id, want: http.StatusNoContent}, nil)
	if failed == nil || failed.lost() {
		return nil
	}
	if seen, f := l.get(ctx, id); f != nil && f.lost() || f == nil && (seen.Status.State == "Stopping" || seen.Status.State == "Terminated") {
		return nil
	}
	return failed
}

// renew puts the end of a sandbox off.
func (l *lifecycle) renew(ctx context.Context, id string, until time.Time) *failure {
	body := map[string]string{"expiresAt": until.UTC().Format(time.RFC3339)}
	return l.insist(ctx, l.at, call{method: http.MethodPost, path: "/sandboxes/" + id + "/renew-expiration", json: body}, nil)
}

// endpoint finds the execd of a sandbox. What it is told is believed only as far as it
// names the host that is configured.
func (l *lifecycle) endpoint(ctx context.Context, id string) (peer, *failure) {
	var told struct {
		Endpoint string            `json:"endpoint"`
		Headers  map[string]string `json:"headers"`
	}
	c := call{method: http.MethodGet, path: "/sandboxes/" + id + "/endpoints/" + execdPort, query: url.Values{"use_server_proxy": {"true"}}}
	if failed := l.insist(ctx, l.at, c, &told); failed != nil {
		return peer{}, failed
	}
	for _, value := range told.Headers {
		l.hide(value)
	}
	base, fault := l.endpointURL(told.Endpoint)
	if fault != "" {
		return peer{}, &failure{sent: true, text: "the service names an endpoint that is not used: " + fault,
			remedy: "have the service name its sandboxes by its own address (server.eip in its configuration), or set sandbox_url to the address that it names"}
	}
	for name, value := range told.Headers {
		if !headerName.MatchString(name) || strings.ContainsAny(value, "\r\n\x00") || strings.EqualFold(name, keyHeader) {
			return peer{}, &failure{sent: true, text: "the service names a header for an endpoint that cannot be sent", remedy: wrongService}
		}
	}
	return peer{base, told.Headers}, nil
}

var (
	headerName   = regexp.MustCompile(`^[A-Za-z0-9-]{1,100}$`)
	endpointForm = regexp.MustCompile(`^(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9.-]+)(:[0-9]{1,5})?(/[A-Za-z0-9._~/-]*)?$`)
)

// endpointURL reads an endpoint, which has no scheme: it has that of the service. It is
// at the service's host. On this machine that is not enough: behind a tunnel the service
// is not here, and other ports are other programs that must not get its word for ours.
func (l *lifecycle) endpointURL(text string) (base *url.URL, fault string) {
	if !endpointForm.MatchString(text) || slices.Contains(strings.Split(text, "/"), "..") {
		return nil, "it is not a host with a path: " + l.shown(text)
	}
	base, err := url.Parse(l.at.base.Scheme + "://" + text)
	if err != nil {
		return nil, "it is not a host with a path: " + l.shown(text)
	}
	if port, err := strconv.Atoi(base.Port()); base.Port() != "" && (err != nil || port < 1 || port > 65535) {
		return nil, "it has no port that can be"
	}
	ours := l.at.base
	switch {
	case loopback(ours.Hostname()) && loopback(base.Hostname()):
		if port(base) != port(ours) {
			return nil, fmt.Sprintf("its port %s is not that of sandbox_url, and who listens there on this machine is not known", port(base))
		}
		base.Host = ours.Host // by whichever name
	case !strings.EqualFold(ours.Hostname(), base.Hostname()):
		return nil, fmt.Sprintf("its host %s is not that of sandbox_url", l.shown(base.Hostname()))
	}
	return base, ""
}

// port is that of an address, named or not.
func port(u *url.URL) string {
	if u.Port() == "" {
		return map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Port()
}

// maxPages bounds how much of a list is read.
const maxPages = 50

// labelled lists the sandboxes that carry our label with this value. A service that
// does not filter may list others: they are left out.
func (l *lifecycle) labelled(ctx context.Context, value string) ([]string, *failure) {
	var ids []string
	for page := 1; page <= maxPages; page++ {
		var list struct {
			Items      []view `json:"items"`
			Pagination struct {
				HasNextPage bool `json:"hasNextPage"`
			} `json:"pagination"`
		}
		query := url.Values{"metadata": {label + "=" + value}, "page": {strconv.Itoa(page)}, "pageSize": {"100"}}
		if failed := l.insist(ctx, l.at, call{method: http.MethodGet, path: "/sandboxes", query: query}, &list); failed != nil {
			return nil, failed
		}
		for _, item := range list.Items {
			if item.Metadata[label] == value && plainID.MatchString(item.ID) {
				ids = append(ids, item.ID)
			}
		}
		if !list.Pagination.HasNextPage {
			return ids, nil
		}
	}
	return ids, nil
}

// deleteLabelled deletes them.
func (l *lifecycle) deleteLabelled(ctx context.Context, value string) *failure {
	ids, failed := l.labelled(ctx, value)
	for _, id := range ids {
		if f := l.delete(ctx, id); f != nil {
			failed = f
		}
	}
	return failed
}
