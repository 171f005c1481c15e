package server_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/confine-dev/confine/rpc/proto"
	"github.com/confine-dev/confine/rpc/server"
	"github.com/confine-dev/confine/sandbox"
)

func TestCapabilities(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := open(t, func(o *server.Options) {
			o.Settings.Mode = sandbox.WorkspaceWrite
			o.Settings.Shown = []proto.Setting{{Key: "sandbox_mode", Value: sandbox.WorkspaceWrite, Origin: "/home/me/config.toml:1"}}
		})
		var raw json.RawMessage
		w.editor.Call(proto.MethodCapabilities, proto.CapabilitiesParams{Wait: true}, &raw)
		var c proto.Capabilities
		if err := json.Unmarshal(raw, &c); err != nil {
			t.Fatal(err)
		}
		if c.Version != "test" || c.ProtocolVersion != 1 || c.Provider != "landlock" || !c.CanAsk || len(c.Providers) != 1 {
			t.Errorf("capabilities %+v", c)
		}
		if len(c.Roots) != 1 || c.Roots[0] != w.folder || len(c.RefusedRoots) != 0 {
			t.Errorf("roots %q, refused %+v", c.Roots, c.RefusedRoots)
		}
		want := []proto.Setting{{Key: "sandbox_mode", Value: "workspace-write", Origin: "/home/me/config.toml:1"}}
		if !slices.Equal(c.Settings, want) {
			t.Errorf("settings %+v", c.Settings)
		}
		if c.Limits.TextBytes != 64_000 || c.Limits.DefaultTimeoutMs != 120_000 || c.Limits.MaxTimeoutMs != 600_000 || c.Limits.ChunkBytes != 65536 || c.Limits.UnsentBytes != 1<<20 || c.Limits.FinishedRuns != 128 || c.Limits.FinishedRunMs != 3_600_000 {
			t.Errorf("limits %+v", c.Limits)
		}
		if strings.Contains(string(raw), ":null") {
			t.Errorf("a list is null: %s", raw)
		}
	})
}

// TestTheToolOfAnAgent: escalation is in it only if it can work, and the mode
// in force cannot be told from it.
func TestTheToolOfAnAgent(t *testing.T) {
	tool := func(t *testing.T, s server.Settings) proto.Tool {
		w := open(t, func(o *server.Options) { s.Confined, o.Settings = o.Settings.Confined, s })
		var c proto.Capabilities
		w.editor.Call(proto.MethodCapabilities, nil, &c)
		return c.Tool
	}
	plain := []string{"command", "description", "workdir", "timeoutMs", "run_in_background"}
	more := append(slices.Clone(plain), "sandbox_permissions", "justification")
	const asked = "The user is asked about each command before it runs"
	for name, test := range map[string]struct {
		settings server.Settings
		names    []string
	}{
		"untrusted":                {server.Settings{Mode: sandbox.ReadOnly, ApprovalPolicy: "untrusted"}, more},
		"untrusted and unconfined": {server.Settings{Mode: sandbox.DangerFullAccess, ApprovalPolicy: "untrusted"}, plain},
		"read-only":                {server.Settings{Mode: sandbox.ReadOnly}, more},
		"workspace-write":          {server.Settings{Mode: sandbox.WorkspaceWrite}, more},
		"never asks":               {server.Settings{Mode: sandbox.ReadOnly, ApprovalPolicy: "never"}, plain},
		"unconfined":               {server.Settings{Mode: sandbox.DangerFullAccess}, plain},
		"external":                 {server.Settings{Mode: sandbox.ExternalSandbox}, plain},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				got := tool(t, test.settings)
				var names []string
				for _, a := range got.Arguments {
					names = append(names, a.Name)
				}
				if !slices.Equal(names, test.names) {
					t.Errorf("arguments %q, want %q", names, test.names)
				}
				properties, ok := got.InputSchema["properties"].(map[string]any)
				if !ok || len(properties) != len(test.names) {
					t.Errorf("schema %+v", got.InputSchema)
				}
				if required := got.InputSchema["required"]; len(required.([]any)) != 2 {
					t.Errorf("required %v", required)
				}
				if permissions, ok := properties["sandbox_permissions"].(map[string]any); ok {
					if enum := permissions["enum"].([]any); len(enum) != 2 || enum[0] != "workspace-write" || enum[1] != "danger-full-access" {
						t.Errorf("enum %v", enum)
					}
				}
				if strings.Contains(got.Description, asked) != (test.settings.ApprovalPolicy == "untrusted") {
					t.Errorf("description %q", got.Description)
				}
				if strings.Contains(got.Description, "sandbox_permissions") != (len(test.names) > 5) {
					t.Errorf("description %q", got.Description)
				}
			})
		})
	}
	t.Run("the same in every confined mode", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			a, _ := json.Marshal(tool(t, server.Settings{Mode: sandbox.ReadOnly}))
			b, _ := json.Marshal(tool(t, server.Settings{Mode: sandbox.WorkspaceWrite}))
			if string(a) != string(b) {
				t.Error("the mode in force shows in the tool")
			}
		})
	})
}

// TestAProviderThatCannotBeUsed is neither named as what confines commands, nor
// is anybody asked for what it would have to do.
func TestAProviderThatCannotBeUsed(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.confined.SetReport(sandbox.Report{Provider: sandbox.ProviderLandlock, Reason: "no Landlock", Remedies: []string{"boot another kernel"}})
		w.editor.Initialize(full(w.folder))
		var c proto.Capabilities
		w.editor.Call(proto.MethodCapabilities, proto.CapabilitiesParams{Wait: true}, &c)
		if c.Provider != sandbox.ProviderNone {
			t.Errorf("provider %q, want none", c.Provider)
		}
		p := proto.RunCommandParams{Command: "make", SandboxPermissions: sandbox.WorkspaceWrite, Justification: "x"}
		if e := w.editor.CallError(proto.MethodRunCommand, p); e.Code != -32803 || !strings.Contains(string(e.Data), "boot another kernel") {
			t.Errorf("%v %s", e, e.Data)
		}
		// Each such error makes confine try again, and after the next one it works.
		synctest.Wait()
		w.confined.SetReport(sandbox.Report{Provider: sandbox.ProviderLandlock, Usable: true})
		w.editor.CallError(proto.MethodRunCommand, p)
		synctest.Wait()
		w.confined.Script("make", exit0)
		id := w.editor.Request(proto.MethodRunCommand, p)
		m, q := w.question()
		w.choose(m, q, "allow_once")
		w.editor.Response(id, nil)
	})
}

func TestReportsOfEveryProvider(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := open(t, func(o *server.Options) {
			o.Settings.ConfinedReport = func(context.Context) []sandbox.Report {
				return []sandbox.Report{{Provider: "landlock", Usable: true}, {Provider: "bwrap", Reason: "not installed", Remedies: []string{"install it"}}}
			}
		})
		var c proto.Capabilities
		w.editor.Call(proto.MethodCapabilities, proto.CapabilitiesParams{Wait: true}, &c)
		if len(c.Providers) != 2 || c.Providers[1].Reason != "not installed" || w.confined.Probes() != 0 {
			t.Errorf("providers %+v", c.Providers)
		}
	})
}
