//go:build unix

package osbtest_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/confine-dev/confine/sandbox/opensandbox/osbtest"
)

// try makes one call and returns its status and body; the error is of either.
func (w *world) try(ctx context.Context, method, url, body string) (int, string, error) {
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	r.Header.Set(osbtest.APIKeyHeader, w.Key())
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	return answer.StatusCode, string(data), err
}

func TestFaultsOfAnyCall(t *testing.T) {
	for _, test := range []struct {
		kind   osbtest.Kind
		status int // 0: no whole answer
		body   string
	}{
		{osbtest.Unauthorized, 401, `"code":`},
		{osbtest.Forbidden, 403, `"code":`},
		{osbtest.TooMany, 429, `"code":`},
		{osbtest.RetryAfter, 429, `"code":`},
		{osbtest.Internal, 500, "<html>"},
		{osbtest.BadGateway, 502, "<html>"},
		{osbtest.Unavailable, 503, `"code":`},
		{osbtest.HTML, 200, "<html>"},
		{osbtest.BadJSON, 200, `{"id":"x"`},
		{osbtest.Redirect, 307, ""},
		{osbtest.Drop, 0, ""},
		{osbtest.CutBody, 0, ""},
		{osbtest.Restart, 0, ""},
		{osbtest.Slow, 202, `"id":`},
	} {
		for _, after := range []bool{false, true} {
			w := &world{Server: newServer(t, osbtest.Options{})}
			w.Inject(osbtest.Create, 1, osbtest.Fault{Kind: test.kind, After: after})
			status, body, err := w.try(t.Context(), "POST", w.URL()+"/v1/sandboxes", creation)
			if test.status == 0 && err == nil || test.status != 0 && (err != nil || status != test.status || !strings.Contains(body, test.body)) {
				t.Errorf("%s: %d %q (%v)", test.kind, status, body, err)
			}
			made, want := len(w.Ledger().Sandboxes), 0
			if after || test.kind == osbtest.CutBody || test.kind == osbtest.Slow {
				want = 1
			}
			if made != want {
				t.Errorf("%s, after %v: %d sandboxes, want %d", test.kind, after, made, want)
			}
			if told := made == 1 && w.Ledger().Sandboxes[0].Told; told != (test.kind == osbtest.Slow) {
				t.Errorf("%s: told %v", test.kind, told)
			}
			if status, _, err := w.try(t.Context(), "POST", w.URL()+"/v1/sandboxes", creation); status != 202 {
				t.Errorf("the call after %s: %d (%v)", test.kind, status, err)
			}
			if len(w.Trapped()) != 0 {
				t.Errorf("%s: a redirection was followed that should not be", test.kind)
			}
		}
	}
}

func TestHangAndHold(t *testing.T) {
	w := &world{Server: newServer(t, osbtest.Options{})}
	w.Inject(osbtest.Health, 1, osbtest.Fault{Kind: osbtest.Hang})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if status, _, err := w.try(ctx, "GET", w.URL()+"/health", ""); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a call that hangs: %d, %v", status, err)
	}

	hold := w.HoldCall(osbtest.Create, 2)
	first, _, _ := w.try(t.Context(), "POST", w.URL()+"/v1/sandboxes", creation)
	done := make(chan int)
	go func() {
		status, _, _ := w.try(context.Background(), "POST", w.URL()+"/v1/sandboxes", creation)
		done <- status
	}()
	<-hold.Reached()
	if made := len(w.Ledger().Sandboxes); first != 202 || made != 1 {
		t.Errorf("before the release: %d, %d sandboxes", first, made)
	}
	hold.Release()
	if second := <-done; second != 202 {
		t.Errorf("after the release: %d", second)
	}
}

func TestEndlessAnswer(t *testing.T) {
	w := &world{Server: newServer(t, osbtest.Options{})}
	w.InjectAll(osbtest.Health, osbtest.Fault{Kind: osbtest.Huge})
	if _, body, err := w.try(t.Context(), "GET", w.URL()+"/health", ""); err != nil || len(body) != 1<<20 {
		t.Errorf("%d bytes (%v)", len(body), err)
	}
	w.Heal()
	if _, body, _ := w.try(t.Context(), "GET", w.URL()+"/health", ""); body != `{"status":"healthy"}` {
		t.Errorf("after it healed: %s", body)
	}
}

func TestFaultsOfTheStream(t *testing.T) {
	for _, test := range []struct {
		kind  osbtest.Kind
		text  string
		want  []string // the kinds of events, as far as they can be read
		ended bool     // as if nothing were wrong
	}{
		{osbtest.CutInit, "", nil, false},
		{osbtest.CutEvent, "", []string{"init", "ping", "stdout"}, false},
		{osbtest.CutFinal, "", []string{"init", "ping", "stdout"}, false},
		{osbtest.Duplicate, "", []string{"init", "init", "ping", "ping", "stdout", "stdout", "execution_complete", "execution_complete"}, true},
		{osbtest.FinalTwice, "", []string{"init", "ping", "stdout", "execution_complete", "execution_complete"}, true},
		{osbtest.AfterFinal, "", []string{"init", "ping", "stdout", "execution_complete", "stdout", "error", "execution_complete"}, true},
		{osbtest.BadExit, "oops", []string{"init", "ping", "stdout", "error"}, true},
		{osbtest.ErrorZero, "", []string{"init", "ping", "stdout", "error"}, true},
		{osbtest.BadEvent, "<html>", []string{"init", "ping", "stdout", "execution_complete"}, true},
		{osbtest.Expired, "", []string{"init", "ping"}, true},
		{osbtest.ExecdRestart, "", []string{"init"}, false},
	} {
		t.Run(string(test.kind), func(t *testing.T) {
			w := newWorld(t, osbtest.Options{})
			w.Inject(osbtest.Command, 1, osbtest.Fault{Kind: test.kind, Text: test.text})
			r, _ := http.NewRequestWithContext(t.Context(), "POST", "http://"+w.endpoint+"/command", strings.NewReader(`{"command":"echo hi"}`))
			r.Header.Set(osbtest.ExecTokenName, w.token)
			var types []string
			answer, err := http.DefaultClient.Do(r)
			if err == nil {
				defer answer.Body.Close()
				lines := bufio.NewScanner(answer.Body)
				for lines.Scan() {
					var e streamEvent
					if json.Unmarshal(lines.Bytes(), &e) == nil {
						types = append(types, e.Type)
					}
				}
				err = lines.Err()
			}
			if !slices.Equal(types, test.want) || (err == nil) != test.ended {
				t.Errorf("events %v, want %v; %v", types, test.want, err)
			}
			w.await(t, func(l osbtest.Ledger) bool { return len(l.Running()) == 0 })
			if ran := w.Ledger().With("echo hi"); len(ran) != 1 {
				t.Errorf("ran: %+v", ran)
			}
		})
	}
}

func TestCommandThatCannotStart(t *testing.T) {
	w := newWorld(t, osbtest.Options{})
	w.InjectAll(osbtest.Command, osbtest.Fault{Kind: osbtest.CannotStart})
	foreground := w.run(t, "true")
	if last := foreground[len(foreground)-1]; last.Type != "error" || !strings.HasPrefix(last.Error.Value, "fork/exec ") {
		t.Errorf("foreground: %+v", last)
	}
	background := decode(t, w.command(t, map[string]any{"command": "true", "background": true}).Body)
	if types := typesOf(background); !slices.Equal(types, []string{"init", ""}) {
		t.Errorf("background: %v", types)
	}
	if ran := w.Ledger().Commands; len(ran) != 0 {
		t.Errorf("ran: %+v", ran)
	}
}

// TestRestartOfExecd: a command goes on when the execd that started it is another,
// which knows nothing of it; the end of the sandbox ends it.
func TestRestartOfExecd(t *testing.T) {
	w := newWorld(t, osbtest.Options{})
	id := decode(t, w.command(t, map[string]any{"command": "sleep 1000", "background": true}).Body)[0].Text
	w.RestartExecd(w.sandbox)
	if answer := w.execd(t, "GET", "/command/status/"+id, nil, ""); answer.StatusCode != 404 {
		t.Errorf("status: %d", answer.StatusCode)
	}
	if running := w.Ledger().Running(); len(running) != 1 {
		t.Errorf("running: %+v", running)
	}
	w.lifecycle(t, "DELETE", "/v1/sandboxes/"+w.sandbox, "")
	if running := w.Ledger().Running(); len(running) != 0 {
		t.Errorf("still running: %+v", running)
	}
}

func TestRedirectionIsATrap(t *testing.T) {
	w := &world{Server: newServer(t, osbtest.Options{})}
	w.InjectAll(osbtest.Get, osbtest.Fault{Kind: osbtest.Redirect})
	r, _ := http.NewRequestWithContext(t.Context(), "GET", w.URL()+"/v1/sandboxes/x", nil)
	r.Header.Set(osbtest.APIKeyHeader, w.Key())
	answer, err := http.DefaultClient.Do(r) // which follows, and takes the header along
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if len(w.Trapped()) != 1 || len(w.Strays()) != 1 {
		t.Errorf("trapped %+v, strays %v", w.Trapped(), w.Strays())
	}
}

// TestChaosIsDecidedBySeed: the same seed spoils the same calls, another one others,
// and never so many in a row that a client that tries again gets nowhere.
func TestChaosIsDecidedBySeed(t *testing.T) {
	faults := func(seed uint64) (kinds []osbtest.Kind) {
		w := &world{Server: newServer(t, osbtest.Options{})}
		w.Chaos(seed, 50)
		for range 60 {
			_, _, _ = w.try(t.Context(), "GET", w.URL()+"/v1/sandboxes", "")
		}
		for _, r := range w.Requests() {
			kinds = append(kinds, r.Fault)
		}
		return kinds
	}
	one, again, other := faults(1), faults(1), faults(2)
	if !slices.Equal(one, again) || slices.Equal(one, other) {
		t.Errorf("seed 1: %v\nagain:  %v\nseed 2: %v", one, again, other)
	}
	row, spoiled := 0, 0
	for _, kind := range one {
		if row++; kind == "" {
			row = 0
		} else {
			spoiled++
		}
		if row > 2 {
			t.Fatalf("more than two in a row: %v", one)
		}
	}
	if spoiled < 15 || spoiled > 45 {
		t.Errorf("%d of %d calls were spoiled", spoiled, len(one))
	}
}
