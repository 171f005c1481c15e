package approval

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/confine-dev/confine/sandbox"
)

// narrow is a request for one file more in the same mode, after a first run.
func narrow(write ...*sandbox.Root) Request {
	r := request()
	r.Kind, r.Have, r.Want, r.Justification = KindEscalation, workspace(), workspace(), ""
	r.Want.Writable = write
	return r
}

func file(path string) *sandbox.Root {
	return &sandbox.Root{Path: path, File: true, Dev: 1, Ino: uint64(len(path))}
}

func folder(path string) *sandbox.Root {
	return &sandbox.Root{Path: path, Dev: 1, Ino: uint64(len(path))}
}

func TestNarrowText(t *testing.T) {
	before, after := []string{"Configured: workspace-write.", "The whole command runs again, from its beginning."}, []string{
		"Command, 11 bytes: «npm install»", "Folder: «/home/me/project»"}
	for _, c := range []struct {
		name  string
		r     func() Request
		title string
		opens []string
	}{
		{"a file", func() Request { return narrow(file("/srv/data")) }, "with 1 path to WRITE", []string{"Becomes writable: the file «/srv/data»."}},
		{"everything", func() Request {
			r := narrow(folder("/srv/d"), file("/home/me/.bashrc"))
			r.Want.Network, r.Want.Readable = true, []*sandbox.Root{file("/home/me/.ssh/key")}
			r.Grants = []Grant{
				{Path: "/srv/d", Kind: sandbox.GrantWrite, Missing: []string{"new", "other"}, NotRefused: true},
				{Path: "/home/me/.bashrc", Kind: sandbox.GrantWrite, Perils: []sandbox.Peril{sandbox.PerilRuns}},
				{Path: "/home/me/.ssh/key", Kind: sandbox.GrantWrite, Missing: []string{"of another kind"}},
				{Path: "/home/me/.ssh/key", Kind: sandbox.GrantRead, Perils: []sandbox.Peril{sandbox.PerilSecrets, sandbox.PerilServices}},
				{Path: "/not/asked/for", Kind: sandbox.GrantRead, Missing: []string{"x"}},
			}
			return r
		}, "with NETWORK, 2 paths to WRITE, 1 path to READ", []string{
			"Network: it reaches the internet and every service on localhost.",
			"Becomes writable: the FOLDER «/srv/d» and everything in it, because «new» does not exist there yet, nor 1 more. NOTHING was refused there.",
			"Becomes writable: the file «/home/me/.bashrc». Programs RUN or obey what stands there, as you.",
			"Becomes readable: the file «/home/me/.ssh/key». PASSWORDS OR KEYS are often kept there. Running programs LISTEN there and can be reached.",
		}},
		{"characters that mislead", func() Request {
			r := narrow(folder("/a\n/b\u202e»\x1b[2J\xff<b>"))
			r.Grants = []Grant{{Path: r.Want.Writable[0].Path, Kind: sandbox.GrantWrite, Missing: []string{"x\ny" + strings.Repeat("pq", 250)}}}
			return r
		}, "with 1 path to WRITE", []string{
			`Becomes writable: the FOLDER «/a\n/b\u{202E}\u{BB}\u{1B}[2J\xff\u{3C}b>» and everything in it, because «x\nypqpqpqpqpq⟨475 bytes not shown⟩qpqpqpqpqpqpqpq» does not exist there yet.`,
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := newQuestion(c.r(), testID, testTime)
			want := slices.Concat([]string{"confine 3fa9: run a command again in workspace-write " + c.title + "?"}, before, c.opens, after)
			got := strings.Split(q.Text, "\n")
			if len(got) < len(want) || !slices.Equal(got[:len(want)], want) || q.Unshown != 0 {
				t.Errorf("got %d unshown,\n%s\nwant\n%s", q.Unshown, q.Text, strings.Join(want, "\n"))
			}
			for _, fact := range c.opens {
				if !slices.Contains(q.Warnings, fact) {
					t.Errorf("the warnings %q lack %q", q.Warnings, fact)
				}
			}
		})
	}
}

// TestNothingOpensUnseen: what does not fit into a message is counted, and all
// of it stands in the question.
func TestNothingOpensUnseen(t *testing.T) {
	r := narrow()
	for i := range 16 {
		r.Want.Writable = append(r.Want.Writable, file(fmt.Sprintf("/srv/%d/%s", i, strings.Repeat("ab", 50))))
	}
	q := newQuestion(r, testID, testTime)
	shown := 0
	for i, root := range r.Want.Writable {
		if strings.Contains(q.Text, "«"+root.Path+"»") {
			shown++
		}
		if q.Wanted.Write[i] != root.Path || !strings.Contains(strings.Join(q.Warnings, "\n"), "«"+root.Path+"»") {
			t.Errorf("%q does not stand in the question", root.Path)
		}
	}
	if q.Unshown != 16-shown || q.Unshown == 0 || utf16Len(q.Text) > MaxText {
		t.Errorf("%d are shown and %d are not, in %d units", shown, q.Unshown, utf16Len(q.Text))
	}
	// A path is shown whole or not at all, however long it is.
	r.Want.Writable = []*sandbox.Root{file("/" + strings.Repeat("\x01\x02", 2000))}
	q = newQuestion(r, testID, testTime)
	if q.Unshown != 1 || strings.Contains(q.Text, "Becomes writable") {
		t.Errorf("%d unshown of\n%s", q.Unshown, q.Text)
	}
}

func TestGainedGrants(t *testing.T) {
	config, data, key := file("/home/me/project/.git/config"), file("/srv/data"), file("/home/me/key")
	base := func(change func(*sandbox.Policy)) sandbox.Policy {
		p := workspace()
		p.Protected, p.Unreadable = []string{config.Path}, []string{key.Path}
		if change != nil {
			change(&p)
		}
		return p
	}
	write := func(roots ...*sandbox.Root) func(*sandbox.Policy) {
		return func(p *sandbox.Policy) { p.Writable = roots }
	}
	read := func(roots ...*sandbox.Root) func(*sandbox.Policy) {
		return func(p *sandbox.Policy) { p.Readable = roots }
	}
	inside, gitFolder, replaced := file("/home/me/project/x"), folder("/home/me/project/.git"), &sandbox.Root{Path: data.Path, File: true, Dev: 1, Ino: 99}
	for _, c := range []struct {
		name       string
		have, want sandbox.Policy
		gain       gain
	}{
		{"a file", base(nil), base(write(data)), gain{write: []*sandbox.Root{data}}},
		{"the same file", base(write(data)), base(write(data)), gain{}},
		{"another in its place", base(write(data)), base(write(replaced)), gain{write: []*sandbox.Root{replaced}}},
		{"one more", base(write(data)), base(write(data, config)), gain{write: []*sandbox.Root{config}}},
		{"what is protected", base(nil), base(write(config)), gain{write: []*sandbox.Root{config}}},
		{"a folder with what is protected", base(nil), base(write(gitFolder)), gain{write: []*sandbox.Root{gitFolder}}},
		{"what is writable anyway", base(nil), base(write(inside)), gain{}},
		{"the workspace, read-only", readOnly(), func() sandbox.Policy { p := readOnly(); p.Writable = []*sandbox.Root{inside}; return p }(), gain{write: []*sandbox.Root{inside}}},
		{"a hidden file", base(nil), base(read(key)), gain{read: []*sandbox.Root{key}}},
		{"the same hidden file", base(read(key)), base(read(key)), gain{}},
		{"given up", base(write(data)), base(nil), gain{}},
		{"without a sandbox", base(nil), sandbox.Policy{Mode: sandbox.DangerFullAccess, Writable: []*sandbox.Root{data}}, gain{mode: true}},
	} {
		if got := gained(c.have, c.want); !reflect.DeepEqual(got, c.gain) || got.none() != reflect.DeepEqual(c.gain, gain{}) {
			t.Errorf("%s: gains %+v, want %+v", c.name, got, c.gain)
		}
	}
}

// TestSessionGrantOfAPathIsExact: one yes for a path is none for another.
func TestSessionGrantOfAPathIsExact(t *testing.T) {
	g, p := newGate(t, Options{}), picks("allow-session")
	wantDecision(t, decide(t, g, p, narrow(file("/srv/data"))), AllowedSession, ByPerson)
	wantDecision(t, decide(t, g, p, narrow(file("/srv/data"))), AllowedSession, ByGrant)
	p.answer.OptionID = "refuse"
	for _, roots := range [][]*sandbox.Root{
		{file("/srv/other")}, {file("/srv/data"), file("/srv/x")}, {{Path: "/srv/data", File: true, Dev: 1, Ino: 99}},
	} {
		wantDecision(t, decide(t, g, p, narrow(roots...)), Rejected, ByPerson)
	}
	reading := narrow()
	reading.Want.Readable = []*sandbox.Root{file("/srv/data")}
	wantDecision(t, decide(t, g, p, reading), Rejected, ByPerson)
	g.EndRoot("/srv")
	wantDecision(t, decide(t, g, p, narrow(file("/srv/data"))), Rejected, ByPerson)
}

// TestVariantsWearOut: there is no end of paths to ask for.
func TestVariantsWearOut(t *testing.T) {
	g, p := newGate(t, Options{}), picks("refuse")
	ask := func(i int) Decision { return decide(t, g, p, narrow(file(fmt.Sprintf("/srv/%d", i)))) }
	for i := range 6 {
		wantDecision(t, ask(i), Rejected, ByPerson)
	}
	wantDecision(t, ask(100), Rejected, ByMemory)
	r := narrow(file("/srv/0"))
	r.Command = "another"
	p.answer.OptionID = "allow-once"
	wantDecision(t, decide(t, g, p, r), AllowedOnce, ByPerson)

	g = newGate(t, Options{})
	for i := range 12 { // a yes between them begins the count anew
		p.answer.OptionID = map[bool]string{true: "allow-once", false: "refuse"}[i%4 == 3]
		if d := ask(i); d.By != ByPerson {
			t.Errorf("request %d: %s by %s", i, d.Outcome, d.By)
		}
	}
}

func TestGrantsAreRecorded(t *testing.T) {
	path := auditPath(t)
	g := newGate(t, Options{Audit: openAudit(t, path, AuditOptions{})})
	r := narrow(file("/srv/da\xffta"), folder("/srv/d"))
	r.Want.Readable = []*sandbox.Root{file("/srv/key")}
	decide(t, g, picks("allow-once"), r)
	got := fmt.Sprint(readLines(t, path)[0]["wanted"])
	want := fmt.Sprint(map[string]any{
		"mode": "workspace-write", "network": false, "read": []any{"/srv/key"},
		"write": []any{"/home/me/project", map[string]any{"base64": "L3Nydi9kYf90YQ=="}, "/srv/d"},
	})
	if got != want {
		t.Errorf("recorded %s, want %s", got, want)
	}
}
