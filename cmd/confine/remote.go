package main

import (
	"reflect"

	"github.com/confine-dev/confine/cmd/confine/config"
	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/opensandbox"
)

// remotely reports whether settings send commands to another machine.
func remotely(s config.Settings) bool { return s.Backend == sandbox.ProviderOpenSandbox }

// opensandbox is the provider that sends commands to the service of the settings: the
// one that there is, as long as they say the same about it. It is called with mu held,
// or before anybody else has p.
func (p *providers) opensandbox(s config.Settings) sandbox.Provider {
	if before := p.choice.known; before != nil && reflect.DeepEqual(p.choice.remote, s.Remote) {
		if made, ok := known(before, sandbox.ProviderOpenSandbox).(*onDemand); ok {
			return made
		}
	}
	r := s.Remote
	made, err := opensandbox.New(opensandbox.Config{
		URL: r.URL, APIKey: r.APIKey, API: r.API, PlainHTTP: r.PlainHTTP,
		Image: r.Image, CPU: r.CPU, Memory: r.Memory, Workspace: r.Workspace, Output: r.Output,
		UploadSize: r.UploadSize, UploadSkip: r.UploadSkip,
		Secrets:  func() []string { return p.secrets(s) },
		StateDir: p.state, Log: p.o.log,
	})
	if err != nil {
		return absent{sandbox.ProviderOpenSandbox, err.Error(), "correct the settings"}
	}
	provider := &onDemand{name: made.Name(), made: made} // it has nothing open before it is used
	p.made = append(p.made, provider)
	return provider
}
