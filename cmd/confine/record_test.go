package main

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/confine-dev/confine/approval"
	"github.com/confine-dev/confine/cmd/confine/config"
	"github.com/confine-dev/confine/rpc/proto"
	"github.com/confine-dev/confine/rpc/server"
	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/harden"
	"github.com/confine-dev/confine/sandbox/sandboxtest"
)

// fakeHost is a machine with what its providers would report.
type fakeHost struct {
	name     string
	settings server.Settings
	confined string // the provider that would confine
	reports  []sandbox.Report
	hints    []string
	hardened harden.State

	ok         bool
	status     int
	provider   string
	doctorSays []string
	setupSays  []string // lines, as far as each goes
}

var (
	fullLandlock = sandbox.Report{Provider: "landlock", Kind: "linux-landlock", Usable: true, Version: "ABI 7", ABI: 7, Layers: []string{"namespaces", "landlock", "seccomp"},
		Facets: map[sandbox.Facet]sandbox.FacetReport{sandbox.FileWrite: {State: sandbox.Enforced}},
		Limits: map[sandbox.Resource]sandbox.FacetReport{sandbox.Memory: {State: sandbox.Open, Reason: "nobody counts"}},
		Checks: []sandbox.Check{{Name: "fileWrite: shout", OK: true, Detail: "refused"}}}
	oldLandlock = sandbox.Report{Provider: "landlock", Usable: true, Version: "ABI 4", ABI: 4, Layers: []string{"landlock", "seccomp"}, Reason: "making a user namespace: refused",
		MissingRights: []string{"ioctl on devices (ABI 5)"}, Remedies: []string{"allow user namespaces"}}
	noLandlock = sandbox.Report{Provider: "landlock", Kind: "linux-landlock", Reason: "the kernel is old", Remedies: []string{"boot a newer one"}}
	noBwrap    = sandbox.Report{Provider: "bwrap", Reason: "bubblewrap is not installed", Remedies: []string{"install it", "or use landlock"}}
	elsewhere  = sandbox.Report{Provider: "seatbelt", Reason: "it is for another system"}
	someBwrap  = sandbox.Report{Provider: "bwrap", Usable: true, Version: "0.8.0", Layers: []string{"bwrap"}}
	traceable  = 1
)

var fakeHosts = []fakeHost{
	{
		name: "everything", settings: server.Settings{Mode: sandbox.WorkspaceWrite}, confined: "landlock", reports: []sandbox.Report{fullLandlock, someBwrap},
		ok: true, provider: "landlock",
		doctorSays: []string{"Commands run in mode workspace-write, confined by landlock.", "landlock (ABI 7): usable", "layers: namespaces, landlock, seccomp", "limit memory", "check fileWrite: shout: ok refused", "bwrap (0.8.0): usable"},
		setupSays:  []string{"sandbox       ok       Commands run in mode workspace-write, confined by landlock.", "landlock      ok       ABI 7; namespaces, landlock, seccomp", "bwrap         ok       0.8.0; bwrap", "hardening     ok       confine's own process"},
	},
	{
		name: "an old kernel without namespaces or bubblewrap", settings: server.Settings{Mode: sandbox.ReadOnly, Provider: "auto"}, confined: "landlock", reports: []sandbox.Report{oldLandlock, noBwrap},
		hints: []string{"PATH is not set"}, hardened: harden.State{Dumpable: harden.Control[int]{Value: &traceable, Wanted: new(int), Error: "a filter refused it"}},
		ok: true, provider: "landlock",
		doctorSays: []string{"this Landlock cannot refuse: ioctl on devices (ABI 5)", "making a user namespace: refused", "remedy: allow user namespaces", "bwrap: not usable: bubblewrap is not installed", "remedy: install it", "hint: PATH is not set", "a filter refused it"},
		setupSays: []string{"landlock      partly   ABI 4; landlock, seccomp; making a user namespace: refused; this Landlock cannot refuse ioctl on devices (ABI 5); allow user namespaces",
			"bwrap         missing  bubblewrap is not installed; install it; or use landlock", "environment   partly   PATH is not set", "hardening     partly   confine's own process; dumpable: a filter refused it"},
	},
	{
		name: "a provider that is named and missing", settings: server.Settings{Mode: sandbox.ReadOnly, Provider: "bwrap"}, confined: "bwrap", reports: []sandbox.Report{fullLandlock, noBwrap},
		status: 1, provider: "none",
		doctorSays: []string{"Commands are refused: mode read-only", "problem: provider bwrap cannot be used: bubblewrap is not installed; install it; or use landlock"},
		setupSays:  []string{"sandbox       failed   Commands are refused: mode read-only is configured and cannot be enforced.", "bwrap         missing  bubblewrap is not installed; install it; or use landlock"},
	},
	{
		name: "nothing, and commands run all the same", confined: "landlock", reports: []sandbox.Report{noLandlock, noBwrap, elsewhere},
		settings: server.Settings{Mode: sandbox.ReadOnly, Shown: []proto.Setting{{Key: config.KeyOnUnavailable, Value: "run-unconfined", Origin: "/c.toml:4"}}},
		status:   1, provider: "none",
		doctorSays: []string{"Commands run with NOTHING that confines them", "problem: provider landlock cannot be used: the kernel is old; boot a newer one", "/c.toml:4"},
		setupSays:  []string{"sandbox       failed   Commands run with NOTHING that confines them", "landlock      missing  the kernel is old; boot a newer one", "settings      ok       1 of 1 set"},
	},
	{
		name: "a service that fails, and nothing that runs here instead", confined: "opensandbox", reports: []sandbox.Report{fullLandlock, {Provider: "opensandbox", Reason: "it does not answer"}},
		settings: server.Settings{Mode: sandbox.ReadOnly, Elsewhere: true, Provider: "opensandbox", Shown: []proto.Setting{
			{Key: config.KeyOnUnavailable, Value: "run-unconfined", Origin: "/c.toml:4"}, {Key: config.KeyBackend, Value: "opensandbox", Origin: "/c.toml:5"}}},
		status: 1, provider: "none",
		doctorSays: []string{"Commands are refused: mode read-only is configured and cannot be enforced."},
		setupSays:  []string{"sandbox       failed   Commands are refused"},
	},
	{
		name: "full access", settings: server.Settings{Mode: sandbox.DangerFullAccess}, confined: "landlock", reports: []sandbox.Report{noLandlock},
		ok: true, provider: "none",
		doctorSays: []string{"Commands run in mode danger-full-access: confine does not confine them."},
		setupSays:  []string{"sandbox       off      Commands run in mode danger-full-access", "landlock      missing"},
	},
	{
		name: "settings that cannot be trusted", confined: "landlock", reports: []sandbox.Report{fullLandlock},
		settings: server.Settings{Mode: sandbox.ReadOnly, Refusal: "/w/.confine/config.toml:3: a mistake", Shown: []proto.Setting{{Key: "sandbox_mode", Value: "read-only", Origin: "default"}},
			Problems: []proto.SettingsProblem{{Severity: proto.SeverityWarning, Message: "a line is ignored"}, {Severity: proto.SeverityError, Message: "no command runs"}}},
		status: 1, provider: "landlock",
		doctorSays: []string{"No command runs until the settings are mended.\n", "problem: no command runs until the settings are mended: /w/.confine/config.toml:3: a mistake", "warning: a line is ignored", "error: no command runs"},
		setupSays:  []string{"sandbox       failed   No command runs until the settings are mended.", "settings      failed   0 of 1 set; file "},
	},
}

// server is one on this host.
func (h fakeHost) server(t *testing.T) *server.Server {
	t.Helper()
	gate, err := approval.New(approval.Options{Audit: approval.NoAudit()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { gate.Close(context.Background()) })
	s := h.settings
	s.Confined, s.ApprovalPolicy = sandboxtest.NewFake(h.confined), approval.PolicyAsk
	s.ConfinedReport = func(context.Context) []sandbox.Report { return h.reports }
	return server.New(server.Options{
		Version: "test", Settings: s, Unconfined: sandboxtest.NewFake(sandbox.ProviderNone), Gate: gate,
		Hardening: func() harden.State { return h.hardened }, Hints: h.hints,
	})
}

// TestEveryViewShowsTheRecord: what capabilities, the doctor, setup --status and the
// doctor's JSON say is one record, on machines of every kind.
func TestEveryViewShowsTheRecord(t *testing.T) {
	for _, h := range fakeHosts {
		t.Run(h.name, func(t *testing.T) {
			answered := capabilitiesOf(t, h.server(t))
			d := diagnosis{Record: proto.NewRecord()}
			if err := d.ask(t.Context(), h.server(t)); err != nil {
				t.Fatal(err)
			}
			if d.OK != h.ok || d.Provider != h.provider || d.status() != h.status || d.OK != (len(d.Problems) == 0) {
				t.Errorf("ok %v, provider %s, status %d, problems %q", d.OK, d.Provider, d.status(), d.Problems)
			}
			diagnosed := map[string]any{}
			data, err := json.Marshal(d)
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(data, &diagnosed); err != nil {
				t.Fatal(err)
			}
			for _, problem := range d.Problems {
				if strings.Contains(problem, elsewhere.Reason) {
					t.Errorf("a provider of another system is called a problem: %q", d.Problems)
				}
			}
			for field := range reflect.TypeFor[proto.Record]().Fields() {
				name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
				if !reflect.DeepEqual(diagnosed[name], answered[name]) || diagnosed[name] == nil {
					t.Errorf("%s: the doctor has %v, capabilities %v", name, diagnosed[name], answered[name])
				}
			}
			var doctor, setup strings.Builder
			d.print(&doctor)
			for _, line := range d.statusLines() {
				line.print(&setup)
			}
			for _, say := range h.doctorSays {
				if !strings.Contains(doctor.String(), say) {
					t.Errorf("the doctor does not say %q:\n%s", say, &doctor)
				}
			}
			lines := strings.Split(setup.String(), "\n")
			for _, say := range h.setupSays {
				if !slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, say) }) {
					t.Errorf("setup has no line %q:\n%s", say, &setup)
				}
			}
		})
	}
}

// capabilitiesOf is what an editor gets as answer, with the names on the wire.
func capabilitiesOf(t *testing.T, s *server.Server) map[string]any {
	t.Helper()
	c, err := connect(t.Context(), s, clientOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	var answered map[string]any
	if err := c.conn.Call(t.Context(), proto.MethodCapabilities, proto.CapabilitiesParams{Wait: true}, &answered); err != nil {
		t.Fatal(err)
	}
	return answered
}

// TestAbsentProviders: what this version or system does not have claims nothing and
// starts nothing, and there is no name for anything else, such as the protection of
// confine's own process or a sandbox of Windows.
func TestAbsentProviders(t *testing.T) {
	var names []string
	for _, absent := range notBuilt {
		names = append(names, absent.Name())
		r := absent.Probe(t.Context())
		if want := (sandbox.Report{Provider: absent.Name(), Reason: r.Reason}); r.Reason == "" || !reflect.DeepEqual(r, want) {
			t.Errorf("%s reports %+v", absent.Name(), r)
		}
		if _, err := absent.Start(t.Context(), sandbox.Spec{Policy: sandbox.Policy{Mode: sandbox.ReadOnly}}); err == nil {
			t.Errorf("%s started something", absent.Name())
		}
	}
	if want := []string{"landlock", "bwrap", "seatbelt", "opensandbox"}; !slices.Equal(names, want) {
		t.Errorf("there are %q, want %q", names, want)
	}
}

func TestHostHints(t *testing.T) {
	for name, row := range map[string]struct {
		env   map[string]string
		paths config.Paths
		want  []string // the beginning of each
	}{
		"an ordinary environment": {map[string]string{"HOME": "/home/me", "PATH": "/bin", "XDG_STATE_HOME": "/s"}, config.Paths{Home: "/home/me"}, nil},
		"nothing":                 {nil, config.Paths{Home: "/home/me"}, []string{"HOME is not set, or to no absolute path", "PATH is not set"}},
		"no home anywhere":        {map[string]string{"HOME": "me", "PATH": "/bin"}, config.Paths{StateDir: "/tmp/confine-7"}, []string{"there is no home folder"}},
		"within a sandbox":        {map[string]string{"HOME": "/h", "PATH": "/bin", "CONFINE_SANDBOX": "landlock"}, config.Paths{Home: "/h"}, []string{"confine itself runs in a sandbox of confine (CONFINE_SANDBOX=landlock)"}},
		"relative folders":        {map[string]string{"HOME": "/h", "PATH": "/bin", "XDG_CONFIG_HOME": "c"}, config.Paths{Home: "/h"}, []string{`XDG_CONFIG_HOME is "c", which is no absolute path`}},
	} {
		t.Run(name, func(t *testing.T) {
			got := hostHints(func(key string) string { return row.env[key] }, row.paths)
			if !slices.EqualFunc(got, row.want, strings.HasPrefix) {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}
