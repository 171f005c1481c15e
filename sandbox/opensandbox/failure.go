package opensandbox

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// failure is a call that was not answered as it should be. Its text holds no secret.
type failure struct {
	status int           // 0: there was no answer that could be read
	sent   bool          // the call may have had its effect
	wait   time.Duration // how long the service wants to be left alone
	text   string
	remedy string // what a person can do, if the status does not say
}

func (f *failure) Error() string { return f.text }

// lost reports whether the service says that there is no such thing.
func (f *failure) lost() bool { return f.status == http.StatusNotFound || f.status == http.StatusGone }

// passing reports whether another try may go better.
func (f *failure) passing() bool {
	return f.status == 0 || f.status == http.StatusTooManyRequests || f.status >= 500
}

const wrongService = "check sandbox_url and sandbox_api"

// remedies says what a person can do about a failure.
func (f *failure) remedies() []string {
	switch {
	case f.remedy != "":
		return []string{f.remedy}
	case f.status == http.StatusUnauthorized || f.status == http.StatusForbidden:
		return []string{"check sandbox_api_key"}
	case f.status >= 300 && f.status < 400:
		return []string{"set sandbox_url to the address that the service has"}
	case f.status == http.StatusBadRequest || f.status == http.StatusUnprocessableEntity:
		return []string{"see what the service objects to: the image, the resources, the mounts, or that it cannot keep a sandbox off the network"}
	case f.status == http.StatusNotFound:
		return []string{wrongService}
	case f.status == http.StatusTooManyRequests:
		return []string{"wait, or end what else uses the service: it has room for no more, or its operator allows no more"}
	case !f.sent:
		return []string{"check that the service runs and that sandbox_url is right"}
	}
	return []string{"try again"}
}

// remedyOf is what a person can do about TLS that does not come to be; empty if it is
// something else that failed.
func remedyOf(err error) string {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "use the host name that the service's certificate is for, and have this system trust who signed it (SSL_CERT_FILE can name a file with that certificate)"
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok || errors.Is(err, http.ErrSchemeMismatch) {
		return "check that the port of sandbox_url is the one where the service speaks TLS"
	}
	return ""
}

// reason is why there was no answer.
func reason(ctx context.Context, err error) string {
	if errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil && errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		return "no answer in time"
	}
	if inner, ok := errors.AsType[*url.Error](err); ok {
		err = inner.Err
	}
	return err.Error()
}

// refused is what an answer that is no success says.
func (s *service) refused(ctx context.Context, p peer, c call, response *http.Response) *failure {
	f := &failure{status: response.StatusCode, sent: true, wait: retryAfter(response.Header.Get("Retry-After"))}
	// The excerpt is cut after secrets were taken out, so that none is cut in two.
	stop := context.AfterFunc(ctx, func() { response.Body.Close() })
	defer stop()
	excerpt, _ := io.ReadAll(io.LimitReader(response.Body, 16<<10)) // what has come is enough
	said := s.shown(string(excerpt))
	switch {
	case f.status >= 300 && f.status < 400:
		said = "it leads elsewhere, which is not followed"
	case said == "":
		said = "it says nothing more"
	}
	f.text = fmt.Sprintf("%s %s at %s was answered with HTTP %d: %s", c.method, c.path, p.base.Host, f.status, said)
	return f
}

// retryAfter reads the header of that name; 0 if it says nothing.
func retryAfter(text string) time.Duration {
	if seconds, err := strconv.Atoi(text); err == nil && seconds > 0 {
		return time.Duration(min(seconds, 3600)) * time.Second
	}
	return 0
}
