package main

import (
	"context"
	"fmt"

	"github.com/confine-dev/confine/sandbox"
)

// absent stands for a provider that this version or system does not have. It
// refuses every command, so that choosing it can never mean no sandbox.
type absent struct{ name, reason string }

// notBuilt are the providers that the settings know and this version lacks.
var notBuilt = []absent{
	{sandbox.ProviderBwrap, "this version of confine does not have it yet"},
	{sandbox.ProviderSeatbelt, "this version of confine does not have it yet"},
	{sandbox.ProviderOpenSandbox, "this version of confine does not have it yet"},
}

// noLandlock stands for the embedded provider where there is none.
var noLandlock = absent{sandbox.ProviderLandlock, "it needs Linux"}

func (a absent) Name() string { return a.name }

func (a absent) Probe(context.Context) sandbox.Report {
	return sandbox.Report{Provider: a.name, Reason: a.reason}
}

func (a absent) Start(_ context.Context, spec sandbox.Spec) (sandbox.Process, error) {
	return nil, &sandbox.UnavailableError{
		Mode:     spec.Policy.Mode,
		Detail:   fmt.Sprintf("provider %s: %s", a.name, a.reason),
		Remedies: []string{`set provider = "auto" in the settings and name no --provider`, "run \"confine doctor\" to see what this machine can enforce"},
	}
}

func (absent) CloseSession(string) {}
func (absent) Close() error        { return nil }
