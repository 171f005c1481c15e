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

	PreferBwrap   bool     // with provider auto: bubblewrap before what is embedded, if it is usable
	BwrapPath     string   // of bubblewrap, absolute; empty: where systems install it
	BwrapReadOnly []string // paths that bubblewrap shows read-only whatever else is said of them; absolute
	BwrapDevices  []string // devices that bubblewrap lets commands use; absolute

	DenyRead         []string // files and folders that no confined command can read; absolute, or ~/ and a path below the home folder
	DenyReadDefaults bool     // hide.Stores as well

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
	KeyPreferBwrap    = "prefer_bwrap"
	KeyBwrapPath      = "bwrap_path"
	KeyBwrapReadOnly  = "bwrap_ro_roots"
	KeyBwrapDevices   = "bwrap_dev_roots"
	KeyDenyRead       = "deny_read"
	KeyDenyReadStores = "deny_read_defaults"
)

// Keys lists every key in the order they are documented and shown in.
var Keys = []string{KeyMode, KeyNetwork, KeyProvider, KeyApprovalPolicy, KeyPreferBwrap, KeyBwrapPath, KeyBwrapReadOnly, KeyBwrapDevices, KeyDenyRead, KeyDenyReadStores}

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

		DenyReadDefaults: true,

		Origins: map[string]string{},
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
