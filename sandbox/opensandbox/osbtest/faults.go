package osbtest

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Route is one call of the APIs.
type Route string

// Every route.
const (
	Health    Route = "health"
	Create    Route = "create"
	List      Route = "list"
	Get       Route = "get"
	Delete    Route = "delete"
	Renew     Route = "renew"
	Endpoint  Route = "endpoint"
	Ping      Route = "ping"
	Command   Route = "command"
	Interrupt Route = "interrupt"
	Status    Route = "status"
	Logs      Route = "logs"
	Upload    Route = "upload"
	Download  Route = "download"
	MakeDirs  Route = "directories"
	OneCall   Route = "run"
)

func (r Route) ofExecd() bool {
	return slices.Contains([]Route{Ping, Command, Interrupt, Status, Logs, Upload, Download, MakeDirs}, r)
}

// Kind is one way in which a call goes wrong.
type Kind string

// Faults of any call. Unless Fault.After is set the call has no effect.
const (
	Unauthorized Kind = "401"
	Forbidden    Kind = "403"
	Gone         Kind = "404" // the sandbox really ends first
	TooMany      Kind = "429"
	RetryAfter   Kind = "429 with Retry-After"
	Internal     Kind = "500" // with a page that shows the request's headers
	BadGateway   Kind = "502"
	Unavailable  Kind = "503"
	Hang         Kind = "no answer"
	Drop         Kind = "connection closed without an answer"
	CutBody      Kind = "answer cut in the middle"
	BadJSON      Kind = "answer that is no JSON"
	HTML         Kind = "page instead of an answer"
	Huge         Kind = "endless answer"
	Redirect     Kind = "redirection to another host"
	Expired      Kind = "sandbox expired meanwhile"
	ExecdRestart Kind = "restart of execd"
	Restart      Kind = "restart of the lifecycle server"
	Slow         Kind = "slow answer" // by some milliseconds; Hold is exact
)

// Faults of the event stream that answers a command, which runs as usual.
const (
	CutInit     Kind = "stream cut before its first event"
	CutEvent    Kind = "stream cut in the middle of an event"
	CutFinal    Kind = "stream cut before the final event"
	Silent      Kind = "stream that stays open without a final event"
	Pinging     Kind = "stream that goes on with pings and no final event"
	Duplicate   Kind = "every event twice"
	FinalTwice  Kind = "final event twice"
	AfterFinal  Kind = "events after the final one that contradict it"
	BadExit     Kind = "exit code that is no number"
	ErrorZero   Kind = "error event with exit code 0"
	BadEvent    Kind = "line that is no event"
	CannotStart Kind = "command that could not be started" // it does not run
)

// Faults of other answers.
const (
	HostileEndpoint Kind = "endpoint at a hostile host"
	StillRunning    Kind = "status that says running for ever"
	NoExitCode      Kind = "status that ended without an exit code"
	OtherExitCode   Kind = "status with another exit code"
	OtherID         Kind = "status of another command"
	BackCursor      Kind = "logs with a cursor that goes back"
	NoCursor        Kind = "logs without a cursor"
)

// Fault is what happens to one call.
type Fault struct {
	Kind Kind

	// After lets the call have its effect first; only the answer is lost.
	After bool

	// Text replaces what a fault would send: the endpoint, the exit code, the line,
	// the cursor.
	Text string
}

// plan is a fault or a hold for one call.
type plan struct {
	route Route
	nth   int // of the route, counted from the server's start; 0 means every call from now on
	fault Fault
	hold  *Hold
}

// Inject makes the nth call of a route from now on (from 1) go wrong.
func (s *Server) Inject(route Route, nth int, fault Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.plans = append(s.plans, &plan{route: route, nth: s.counts[route] + nth, fault: fault})
}

// InjectAll makes every call of a route go wrong from now on.
func (s *Server) InjectAll(route Route, fault Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.plans = append(s.plans, &plan{route: route, fault: fault})
}

// Heal takes back every fault that has not happened yet.
func (s *Server) Heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.plans, s.chaos = nil, nil
}

// Hold is a call that waits.
type Hold struct {
	reached chan struct{}
	release chan struct{}
	once    sync.Once
}

// Reached is closed when the call has come.
func (h *Hold) Reached() <-chan struct{} { return h.reached }

// Release lets it go on.
func (h *Hold) Release() { h.once.Do(func() { close(h.release) }) }

// HoldCall makes the nth call of a route from now on (from 1) wait before it has
// any effect.
func (s *Server) HoldCall(route Route, nth int) *Hold {
	s.mu.Lock()
	defer s.mu.Unlock()
	hold := &Hold{reached: make(chan struct{}), release: make(chan struct{})}
	s.plans = append(s.plans, &plan{route: route, nth: s.counts[route] + nth, hold: hold})
	return hold
}

// chaos decides by seed, route and number of the call alone, so that the order in
// which calls of different routes come changes nothing.
type chaos struct {
	seed    uint64
	percent int
	streak  map[Route]int
}

// maxStreak is how many calls of a route chaos spoils in a row, so that a client
// that tries again a few times gets through.
const maxStreak = 2

// Chaos makes about so many of a hundred calls go wrong, as the seed says.
func (s *Server) Chaos(seed uint64, percent int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.chaos = &chaos{seed: seed, percent: percent, streak: map[Route]int{}}
}

func (c *chaos) fault(route Route, nth int) Fault {
	hash := fnv.New64a()
	fmt.Fprintf(hash, "%s %d", route, nth)
	random := rand.New(rand.NewPCG(c.seed, hash.Sum64()))
	if random.IntN(100) >= c.percent || c.streak[route] >= maxStreak {
		c.streak[route] = 0
		return Fault{}
	}
	c.streak[route]++
	kinds := kindsOf(route)
	fault := Fault{Kind: kinds[random.IntN(len(kinds))], After: random.IntN(2) == 0}
	switch fault.Kind {
	case BadExit:
		fault.Text = badExits[random.IntN(len(badExits))]
	case BadEvent:
		fault.Text = badEvents[random.IntN(len(badEvents))]
	case HostileEndpoint:
		fault.Text = HostileEndpoints[random.IntN(len(HostileEndpoints))]
	case Unauthorized, TooMany, Redirect:
		fault.After = false // who says no has done nothing
	}
	return fault
}

// kindsOf lists what chaos may do to a route. What a client that retries cannot
// get over, such as a service that is never there again, is for named tests.
func kindsOf(route Route) []Kind {
	kinds := []Kind{Unauthorized, TooMany, Internal, BadGateway, Unavailable, Drop, CutBody, BadJSON, HTML, Slow, Redirect}
	switch route {
	case Command:
		kinds = append(kinds, CutInit, CutEvent, CutFinal, Duplicate, FinalTwice, AfterFinal, BadExit, ErrorZero, BadEvent, CannotStart,
			CutInit, CutEvent, CutFinal, Expired, ExecdRestart, Gone)
	case Status:
		kinds = append(kinds, NoExitCode, OtherID, Expired, ExecdRestart, Gone)
	case Logs:
		kinds = append(kinds, BackCursor, NoCursor, Expired, ExecdRestart, Gone)
	case Interrupt, Renew, Ping, Upload, MakeDirs:
		kinds = append(kinds, Expired, Gone)
	case Endpoint:
		kinds = append(kinds, HostileEndpoint, Expired, Gone)
	case Get:
		kinds = append(kinds, Expired, Gone, Restart)
	case Create:
		kinds = append(kinds, Restart)
	case List, Delete: // not refused for good, or a sandbox is left by right
		kinds = []Kind{TooMany, Internal, BadGateway, Unavailable, Drop, CutBody, BadJSON, HTML, Slow, Restart}
	}
	return kinds
}

// What a service that has gone mad may send.
var (
	badExits  = []string{"oops", "", " ", "0x0", "1e0", "999999999999999999999", "256", "-2", "0 ", "٠", "00", "true", "null"}
	badEvents = []string{"{", "null", "[]", `"execution_complete"`, `{"type":7}`, `{"type":"execution_complete"`, "<html>", `{"type":"execution_complete"}}`, "\x00"}

	// HostileEndpoints are addresses that nothing may be sent to. «TRAP» stands for
	// the host that is not to be trusted.
	HostileEndpoints = []string{"", " ", "/", "?", "http://TRAP", "user:password@TRAP", "TRAP#", "TRAP?x=", "TRAP/../..", "//TRAP", `\\TRAP`,
		"TRAP/a b", "TRAP\r\nX-Injected: 1", "file:///etc/passwd", "[::1", "TRAP", "TRAP/box", "127.0.0.1:99999", "127.0.0.1:-1", "TRAP/%zz"}
)

// call is one request on its way.
type call struct {
	route Route
	fault Fault
	hold  *Hold
}

type callKey struct{}

// callOf is the call that a request belongs to.
func callOf(r *http.Request) *call {
	c, _ := r.Context().Value(callKey{}).(*call)
	return c
}

// handle wraps a handler so that its calls are recorded and can go wrong.
func (s *Server) handle(route Route, answer http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := readBody(r)
		if err != nil {
			return // the client is gone
		}
		c := s.arrive(route, r, string(body))
		r = r.WithContext(context.WithValue(r.Context(), callKey{}, c))
		if c.hold != nil {
			close(c.hold.reached)
			select {
			case <-c.hold.release:
			case <-s.closing:
			}
		}
		s.spoil(w, r, c, answer)
	}
}

// arrive records a request and says what is to happen to it.
func (s *Server) arrive(route Route, r *http.Request, body string) *call {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[route]++
	nth := s.counts[route]
	c := &call{route: route}
	if s.chaos != nil {
		c.fault = s.chaos.fault(route, nth)
	}
	for _, p := range s.plans {
		if p.route != route || p.nth != 0 && p.nth != nth {
			continue
		}
		if p.hold != nil {
			c.hold = p.hold
		} else {
			c.fault = p.fault
		}
	}
	s.requests = append(s.requests, Request{Route: route, Nth: nth, Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery,
		Header: r.Header.Clone(), Body: body, Fault: c.fault.Kind})
	return c
}

// spoil answers a call as its fault says.
func (s *Server) spoil(w http.ResponseWriter, r *http.Request, c *call, answer http.HandlerFunc) {
	effect := func() *httptest.ResponseRecorder {
		recorder := httptest.NewRecorder()
		answer(recorder, r)
		return recorder
	}
	switch kind := c.fault.Kind; kind {
	case Hang, Drop, Unauthorized, Forbidden, TooMany, RetryAfter, Internal, BadGateway, Unavailable, HTML, BadJSON, Huge, Redirect:
		if c.fault.After {
			effect()
		}
		s.instead(w, r, kind)
	case CutBody:
		s.cutBody(w, effect())
	case Gone:
		s.endOf(r)
		jsonError(w, http.StatusNotFound, "DOCKER::SANDBOX_NOT_FOUND", "the sandbox does not exist")
	case Expired:
		if c.route != Command {
			s.endOf(r)
		}
		answer(w, r)
	case ExecdRestart:
		if c.route != Command {
			s.RestartExecd(boxID(r))
		}
		answer(w, r)
	case Restart:
		if c.fault.After {
			effect()
		}
		s.RestartLifecycle()
		panic(http.ErrAbortHandler)
	case Slow:
		select {
		case <-time.After(5 * time.Millisecond):
		case <-r.Context().Done():
		case <-s.closing:
		}
		answer(w, r)
	default:
		answer(w, r) // none, or one that the route knows itself
	}
}

// instead sends something other than the answer.
func (s *Server) instead(w http.ResponseWriter, r *http.Request, kind Kind) {
	switch kind {
	case Hang:
		select {
		case <-r.Context().Done():
		case <-s.closing:
		}
		panic(http.ErrAbortHandler)
	case Drop:
		panic(http.ErrAbortHandler)
	case RetryAfter:
		w.Header().Set("Retry-After", "1")
		jsonError(w, http.StatusTooManyRequests, "POOL_EXHAUSTED", "no capacity")
	case HTML, Internal, BadGateway:
		status := map[Kind]int{HTML: http.StatusOK, Internal: http.StatusInternalServerError, BadGateway: http.StatusBadGateway}[kind]
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(status)
		fmt.Fprintf(w, "<html><body>\x1b[31mrequest was: %s %s\n", r.Method, r.URL)
		_ = r.Header.Write(w) // as a page for developers would, keys included
	case BadJSON:
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"id":"x","status":{"state":"Running"`)
	case Huge:
		s.flood(w)
	case Redirect:
		http.Redirect(w, r, s.trap.URL+r.URL.Path, http.StatusTemporaryRedirect)
	default:
		status, _ := strconv.Atoi(string(kind))
		jsonError(w, status, "REFUSED", "not now; you sent "+r.Header.Get(APIKeyHeader)+r.Header.Get(ExecTokenName)+r.Header.Get("Authorization"))
	}
}

// flood sends until the other side has had enough, which is an answer that would
// be valid if it ended.
func (s *Server) flood(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, `{"id":"`)
	block := []byte(strings.Repeat("a", 1<<16))
	for range 16 << 10 { // a gibibyte
		select {
		case <-s.closing:
			panic(http.ErrAbortHandler)
		default:
		}
		if _, err := w.Write(block); err != nil {
			panic(http.ErrAbortHandler)
		}
	}
}

// cutBody sends an answer whose connection ends halfway.
func (s *Server) cutBody(w http.ResponseWriter, whole *httptest.ResponseRecorder) {
	for name, values := range whole.Header() {
		w.Header()[name] = values
	}
	body := whole.Body.Bytes()
	w.Header().Set("Content-Length", strconv.Itoa(len(body)+1))
	w.WriteHeader(whole.Code)
	_, _ = w.Write(body[:len(body)/2])
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// boxID is the sandbox that a request is about, whichever API it is of.
func boxID(r *http.Request) string { return r.PathValue("box") }

// endOf ends the sandbox that a request is about.
func (s *Server) endOf(r *http.Request) { s.Expire(boxID(r)) }

func writeJSON(w http.ResponseWriter, status int, value any) {
	data, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(data)
}
