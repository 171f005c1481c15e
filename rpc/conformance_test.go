package rpc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
)

// The files in testdata/conformance hold prose, then sections:
//
//	-- client --  messages to send, one a line, each framed
//	-- raw --     Go string literals to send in one write, as they are; N*"…"
//	              repeats; {…} is a message with its header; an empty line begins
//	              another write
//	-- server --  everything that is sent meanwhile, one message a line; * stands
//	              for any text
//
// At the end the client hangs up, which must end the connection cleanly.
func TestConformance(t *testing.T) {
	files, err := filepath.Glob("testdata/conformance/*.txtar")
	if err != nil || len(files) < 10 {
		t.Fatalf("only %d conformance files: %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { conform(t, string(text)) })
		})
	}
}

func conform(t *testing.T, text string) {
	p := newPeer(t, conformanceOptions())
	for _, s := range sections(text) {
		switch s.name {
		case "client":
			for _, line := range s.lines {
				p.send(line)
				synctest.Wait()
			}
			continue // what came is for the next section
		case "raw":
			for _, packet := range packets(t, s.lines) {
				p.raw(packet)
				synctest.Wait()
			}
			continue
		case "server":
			p.expect(s.lines...)
		default:
			t.Fatalf("unknown section %q", s.name)
		}
	}
	p.endCleanly()
}

type section struct {
	name  string
	lines []string
}

// sections reads the txtar form; empty lines are kept in raw sections only.
func sections(text string) []section {
	var all []section
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if name, ok := strings.CutPrefix(line, "-- "); ok {
			all = append(all, section{name: strings.TrimSuffix(name, " --")})
		} else if n := len(all) - 1; n >= 0 && (line != "" || all[n].name == "raw") {
			all[n].lines = append(all[n].lines, line)
		}
	}
	return all
}

func packets(t *testing.T, lines []string) []string {
	all := []string{""}
	for _, line := range lines {
		if line == "" {
			all = append(all, "")
			continue
		}
		if strings.HasPrefix(line, "{") {
			all[len(all)-1] += frame(line)
			continue
		}
		times := 1
		if n, rest, ok := strings.Cut(line, "*\""); ok && n != "" && !strings.Contains(n, `"`) {
			var err error
			if times, err = strconv.Atoi(n); err != nil {
				t.Fatal(err)
			}
			line = `"` + rest
		}
		s, err := strconv.Unquote(line)
		if err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		all[len(all)-1] += strings.Repeat(s, times)
	}
	return all
}

// conformanceOptions are the methods that the conformance files use.
func conformanceOptions() Options {
	var notes []string // appended on the read loop; read by requests that come later
	coded := &Error{Code: -32050, Message: "coded", Data: map[string]int{"n": 1}}
	return Options{
		MaxMessage:  1000,
		MaxInFlight: 2,
		Admit: func(method string, isRequest bool) error {
			switch {
			case method == "early":
				return Errorf(-32002, "not yet")
			case method == "admitPanic":
				panic("admit")
			}
			return nil
		},
		Requests: map[string]Handler{
			"echo":  echo,
			"wait":  waiting,
			"early": echo,
			"id":    func(_ context.Context, req *Request) (any, error) { return req.ID, nil },
			"notes": func(context.Context, *Request) (any, error) { return notes, nil },
			"plain": func(context.Context, *Request) (any, error) { return nil, errors.New("plain") },
			"coded": func(context.Context, *Request) (any, error) { return nil, coded },
			"wrapped": func(context.Context, *Request) (any, error) {
				return nil, fmt.Errorf("outer: %w", fmt.Errorf("inner: %w", coded))
			},
			"nilError": func(context.Context, *Request) (any, error) { var e *Error; return nil, e },
			"noCode":   func(context.Context, *Request) (any, error) { return nil, &Error{Message: "no code"} },
			"badData": func(context.Context, *Request) (any, error) {
				return nil, &Error{Code: -1, Message: "m", Data: func() {}}
			},
			"unencodable": func(context.Context, *Request) (any, error) { return func() {}, nil },
			"encodePanic": func(context.Context, *Request) (any, error) { return panicker{}, nil },
			"dataPanic":   func(context.Context, *Request) (any, error) { return nil, &Error{Code: -1, Data: panicker{}} },
			"panic":       func(context.Context, *Request) (any, error) { panic("secret") },
			"goexit":      func(context.Context, *Request) (any, error) { runtime.Goexit(); return nil, nil },
			"decode": func(_ context.Context, req *Request) (any, error) {
				v := struct {
					Name string `json:"name"`
					In   struct {
						N int `json:"n"`
					} `json:"in"`
				}{Name: "default"}
				err := req.Decode(&v)
				return v, err
			},
			"say": func(_ context.Context, req *Request) (any, error) {
				for n := range 3 {
					if err := req.Conn.Notify("said", []int{n}, nil); err != nil {
						return nil, err
					}
				}
				return "done", nil
			},
			"ask": func(ctx context.Context, req *Request) (any, error) {
				var answer any = "unchanged"
				if err := req.Conn.Call(ctx, "question", req.Params, &answer); err != nil {
					if remote, ok := errors.AsType[*Error](err); ok {
						return fmt.Sprintf("%d %s %s", remote.Code, remote.Message, remote.Data), nil
					}
					return err.Error(), nil
				}
				return answer, nil
			},
		},
		Notifications: map[string]Notification{
			"note":      func(_ context.Context, req *Request) { notes = append(notes, string(req.Params)+req.ID) },
			"early":     func(context.Context, *Request) { notes = append(notes, "early") },
			"notePanic": func(context.Context, *Request) { panic("note") },
			"stop":      func(_ context.Context, req *Request) { req.Conn.Close() },
		},
	}
}

type panicker struct{}

func (panicker) MarshalJSON() ([]byte, error) { panic("marshal") }
