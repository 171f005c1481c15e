package day

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestGreeting(t *testing.T) {
	if got := Greeting("day"); got != "hello day" {
		t.Errorf("got %q", got)
	}
	if got := Sum(2, 3); got != 5 {
		t.Errorf("2 + 3 = %d", got)
	}
}

func TestServed(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, Greeting(r.URL.Path)) }))
	defer server.Close()
	reply, err := http.Get(server.URL + "/you")
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	if body, err := io.ReadAll(reply.Body); err != nil || string(body) != "hello /you" {
		t.Errorf("got %q, %v", body, err)
	}
}
