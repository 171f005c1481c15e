package config

import (
	"github.com/confine-dev/confine/sandbox"
)

// Settings are the values in force. See docs/configuration.md.
type Settings struct {
	Mode           sandbox.Mode
	Network        bool
	Provider       string // sandbox.ProviderAuto or the name of a local provider
	ApprovalPolicy string // "ask" or "never"

	// Origins says for each key where its value comes from: OriginDefault,
	// "FILE:LINE", or OriginCommandLine.
	Origins map[string]string
}

// The keys of the settings file and of Origins.
const (
	KeyMode           = "sandbox_mode"
	KeyNetwork        = "network_access"
	KeyProvider       = "provider"
	KeyApprovalPolicy = "approval_policy"
)

// Keys lists every key in the order they are documented and shown in.
var Keys = []string{KeyMode, KeyNetwork, KeyProvider, KeyApprovalPolicy}

// Origins that are not a place in a file.
const (
	OriginDefault     = "default"
	OriginCommandLine = "command line"
)

// Defaults are the settings of a person who has no file.
func Defaults() Settings {
	s := Settings{
		Mode:           sandbox.ReadOnly,
		Network:        false,
		Provider:       sandbox.ProviderAuto,
		ApprovalPolicy: "ask",
		Origins:        map[string]string{},
	}
	for _, key := range Keys {
		s.Origins[key] = OriginDefault
	}
	return s
}

// Providers lists what the key provider accepts.
var Providers = []string{sandbox.ProviderAuto, sandbox.ProviderBwrap, sandbox.ProviderLandlock, sandbox.ProviderSeatbelt}

// approvalPolicies lists what the key approval_policy accepts.
var approvalPolicies = []string{"ask", "never"}
