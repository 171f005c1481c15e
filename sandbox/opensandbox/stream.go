package opensandbox

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"regexp"
	"strconv"
	"strings"
)

// kind is what is known of how a command ended.
type kind int

const (
	unknown kind = iota // nothing
	exited              // with a code
	killed              // by a signal
	broken              // not by itself: execd failed, and says why
)

// verdict is how a command ended, as one source has it.
type verdict struct {
	kind   kind
	code   int
	signal string
	text   string // of unknown and broken: why; not fit to be shown yet
	over   bool   // of unknown: the service says that it ended, and not how
}

// agrees reports whether two known verdicts say the same.
func (v verdict) agrees(o verdict) bool { return v.kind == o.kind && v.code == o.code }

// maxEvent bounds one event: a line of output, however it is spelled.
const maxEvent = 16 << 20

// event is one object of the stream that answers a command.
type event struct {
	Type  string `json:"type"`
	Text  string `json:"text"`
	Error *struct {
		Name      string   `json:"ename"`
		Value     string   `json:"evalue"`
		Traceback []string `json:"traceback"`
	} `json:"error"`
	Code    string `json:"code"` // of an error that is no event, where one should be
	Message string `json:"message"`
}

// events reads the stream: bare objects, one a line, with empty lines between them.
// The prefix that the content type calls for is accepted too.
type events struct{ lines *bufio.Reader }

func newEvents(r io.Reader) *events { return &events{bufio.NewReaderSize(r, 64<<10)} }

// next returns the next event. With ok false the stream is over, or what follows
// cannot be read: end says which.
func (s *events) next() (e event, end verdict, ok bool) {
	cut := func(why string) (event, verdict, bool) { return event{}, verdict{kind: unknown, text: why}, false }
	for {
		line, err := s.line()
		text := bytes.TrimSpace(line)
		text = bytes.TrimSpace(bytes.TrimPrefix(text, []byte("data:")))
		switch {
		case len(line) > maxEvent:
			return cut("an event is too long")
		case len(text) == 0 && err != nil:
			return cut("the stream ended without saying how the command did")
		case len(text) == 0, text[0] == ':', bytes.HasPrefix(text, []byte("event:")), bytes.HasPrefix(text, []byte("id:")), bytes.HasPrefix(text, []byte("retry:")):
			continue
		case text[0] != '{' || json.Unmarshal(text, &e) != nil:
			return cut("the stream has something that is no event")
		case e.Type == "" && e.Code != "":
			return event{}, verdict{kind: unknown, over: true, text: "execd failed: " + e.Message}, false
		}
		return e, verdict{}, true
	}
}

// line reads up to the next end of a line.
func (s *events) line() (line []byte, err error) {
	for {
		piece, err := s.lines.ReadSlice('\n')
		line = append(line, piece...)
		if err != bufio.ErrBufferFull || len(line) > maxEvent {
			return line, err
		}
	}
}

// line is the line that an event of output stands for. execd cuts the end off, save for
// an empty line, of which that is all there is.
func (e event) line() []byte { return []byte(strings.TrimSuffix(e.Text, "\n") + "\n") }

// final is the verdict of an event, if it is a last one.
func (e event) final() (v verdict, last bool) {
	switch {
	case e.Type == "execution_complete":
		return verdict{kind: exited}, true
	case e.Type != "error":
		return v, false
	case e.Error == nil:
		return verdict{kind: unknown, over: true, text: "the service sent an error that says nothing"}, true
	}
	said := strings.Join(e.Error.Traceback, " ")
	if said == "" {
		said = e.Error.Value
	}
	switch code := e.Error.Value; {
	case code == "-1" && signalIn(said) != "":
		return verdict{kind: killed, signal: signalIn(said)}, true
	case exitCode.MatchString(code):
		if n, _ := strconv.Atoi(code); n <= 255 {
			return verdict{kind: exited, code: n}, true
		}
	case !exitNumber.MatchString(code): // execd failed, if that is what it means
		return verdict{kind: unknown, over: true, text: "the service has no exit code for the command: " + said}, true
	}
	return verdict{kind: unknown, over: true, text: "the service names an exit code that cannot be"}, true
}

var (
	exitCode   = regexp.MustCompile(`^[1-9][0-9]{0,2}$`)
	exitNumber = regexp.MustCompile(`^\s*[-+0-9]*\s*$`)
	killedBy   = regexp.MustCompile(`^signal: ([A-Za-z0-9/ ]*[A-Za-z0-9])( \(core dumped\))?$`)
)

// signals are those that end commands, as Go words them.
var signals = map[string]string{
	"killed": "SIGKILL", "terminated": "SIGTERM", "interrupt": "SIGINT", "hangup": "SIGHUP", "quit": "SIGQUIT", "aborted": "SIGABRT",
	"segmentation fault": "SIGSEGV", "bus error": "SIGBUS", "illegal instruction": "SIGILL", "floating point exception": "SIGFPE",
	"broken pipe": "SIGPIPE", "alarm clock": "SIGALRM", "trace/breakpoint trap": "SIGTRAP", "bad system call": "SIGSYS",
	"file size limit exceeded": "SIGXFSZ", "CPU time limit exceeded": "SIGXCPU",
	"user defined signal 1": "SIGUSR1", "user defined signal 2": "SIGUSR2",
}

// signalIn names the signal in a message such as "signal: killed"; empty if there is
// none that is known.
func signalIn(message string) string {
	match := killedBy.FindStringSubmatch(strings.TrimSpace(message))
	if match == nil {
		return ""
	}
	return signals[match[1]]
}
