package config

import (
	"github.com/confine-dev/confine/approval/rules"
	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/opensandbox"
)

// The keys of the settings, as they are spelled everywhere.
const (
	KeyMode           = "sandbox_mode"
	KeyNetwork        = "network_access"
	KeyWritableRoots  = "writable_roots"
	KeyDenyRead       = "deny_read"
	KeyDenyReadStores = "deny_read_defaults"
	KeyApprovalPolicy = "approval_policy"
	KeyRules          = "rules"
	KeyProvider       = "provider"
	KeyOnUnavailable  = "on_unavailable"
	KeyPreferBwrap    = "prefer_bwrap"
	KeyBwrapPath      = "bwrap_path"
	KeyBwrapReadOnly  = "bwrap_ro_roots"
	KeyBwrapDevices   = "bwrap_dev_roots"
	KeyBackend        = "sandbox_backend"
	KeyURL            = "sandbox_url"
	KeyAPIKey         = "sandbox_api_key"
	KeyAPI            = "sandbox_api"
	KeyPlainHTTP      = "sandbox_plain_http"
	KeyImage          = "sandbox_image"
	KeyCPU            = "sandbox_cpu"
	KeySandboxMemory  = "sandbox_memory"
	KeyWorkspace      = "sandbox_workspace"
	KeyUploadSize     = "sandbox_upload_size"
	KeyUploadSkip     = "sandbox_upload_skip"
	KeyOutput         = "sandbox_output"
	KeyNoNewPrivs     = "no_new_privs"
	KeyExcludeTmpdir  = "exclude_tmpdir"
	KeyExcludeTmp     = "exclude_slash_tmp"
	KeyProcesses      = "limits.processes"
	KeyMemory         = "limits.memory"
	KeyOpenFiles      = "limits.open_files"
	KeyFileSize       = "limits.file_size"
	KeyTempSize       = "limits.tmp_size"
)

// Key is one setting.
type Key struct {
	Name    string
	Kind    Kind
	Default any      // of the Go type of Kind; nil if there is none. A number may depend on the machine
	Choices []string // the closed set of a Text; nil for any
	Env     string   // the variable that sets it; empty for none
	Secret  bool     // its value is never shown
	Meaning string   // for the reference, in Markdown

	form  form  // what a text or path must be besides
	order order // which values allow less
	note  func(value any) string
}

// Keys is every setting, in the order in which they are documented and shown.
var Keys = []Key{
	{
		Name: KeyMode, Kind: Text, Default: string(sandbox.ReadOnly), Env: "CONFINE_SANDBOX_MODE",
		Choices: []string{"read-only", "workspace-write", "danger-full-access", "external-sandbox"},
		order: ranked{
			"workspace-write":    {"read-only"},
			"danger-full-access": {"workspace-write", "read-only"},
			"external-sandbox":   {"workspace-write", "read-only"},
		},
		Meaning: "What a command may do without a question.",
	},
	{
		Name: KeyNetwork, Kind: Switch, Default: false, order: only(false),
		Meaning: "Whether a confined command reaches the network without a question. Loopback within a session works without it where the kernel grants user namespaces.",
	},
	{
		Name: KeyWritableRoots, Kind: List, Default: []string{}, form: anyPath, order: fewer{},
		Meaning: "Folders that commands may write to in `workspace-write`, besides those of the workspace; see [below](#more-folders-to-write-to).",
	},
	{
		Name: KeyDenyRead, Kind: List, Default: []string{}, form: hidablePath, order: more{},
		Meaning: "Files and folders that no confined command can read, besides those of `deny_read_defaults`; see [below](#what-commands-cannot-read).",
	},
	{
		Name: KeyDenyReadStores, Kind: Switch, Default: true, order: only(true),
		Meaning: "Whether [well-known credential stores](#hidden-by-default) are hidden.",
	},
	{
		Name: KeyApprovalPolicy, Kind: Text, Default: "ask", Choices: []string{"ask", "untrusted", "never"}, order: ranked{"ask": {"untrusted", "never"}},
		Meaning: "Whether you are asked about what is wider than configured. With `\"untrusted\"` also about every command that [no rule allows](#rules-about-commands); with `\"never\"` what would be asked is refused without a question.",
	},
	{
		Name: KeyRules, Kind: RuleList, Default: rules.Rules{}, order: stricter{},
		Meaning: "Which commands need no question, which always need one, and which are refused: tables `[[rules]]`; see [below](#rules-about-commands). Those of all layers hold together.",
	},
	{
		Name: KeyProvider, Kind: Text, Default: sandbox.ProviderAuto, Choices: Providers, order: fixed{},
		Meaning: "What confines commands; see [below](#what-confines-commands). A provider that is named and cannot be used means that every confined command is refused.",
	},
	{
		Name: KeyOnUnavailable, Kind: Text, Default: "refuse", Choices: []string{"refuse", "run-unconfined"}, order: ranked{"run-unconfined": {"refuse"}},
		Meaning: "What happens to a command where this host lacks what would confine it: it is refused, or runs with nothing that confines it, and its result says so.",
	},
	{
		Name: KeyPreferBwrap, Kind: Switch, Default: false, order: fixed{},
		Meaning: "With `provider = \"auto\"`: bubblewrap confines if it is usable.",
	},
	{
		Name: KeyBwrapPath, Kind: Text, form: absolutePath, order: fixed{},
		Meaning: "The bubblewrap to use. Without it, it is looked for in `/usr/bin`, `/bin`, `/usr/local/bin`, `/run/current-system/sw/bin` and `/run/wrappers/bin`, never on `PATH`.",
	},
	{
		Name: KeyBwrapReadOnly, Kind: List, Default: []string{}, form: absolutePath, order: fixed{},
		Meaning: "Folders and files that bubblewrap shows read-only whatever else is said of them: it closes part of a workspace, or shows what would be hidden below `/run` or `/tmp`.",
	},
	{
		Name: KeyBwrapDevices, Kind: List, Default: []string{}, form: absolutePath, order: fewer{},
		Meaning: "Devices that commands under bubblewrap may use, such as `/dev/kvm`; never folders.",
	},
	{
		Name: KeyBackend, Kind: Text, Default: "none", Choices: []string{"none", "opensandbox"}, Env: "CONFINE_SANDBOX_BACKEND", order: fixed{},
		Meaning: "Where commands run: on this machine (`\"none\"`) or in a remote OpenSandbox; see [below](#a-remote-opensandbox). They never run here because it cannot be reached.",
	},
	{
		Name: KeyURL, Kind: Text, Env: "CONFINE_SANDBOX_URL", form: webAddress, order: fixed{},
		Meaning: "The address of the OpenSandbox, such as `\"https://host:8080\"`, without a password or token in it. It must be `https` off this machine.",
	},
	{
		Name: KeyAPIKey, Kind: Text, Env: "CONFINE_SANDBOX_API_KEY", Secret: true, order: fixed{},
		Meaning: "Its key. It is never shown, and while there is one no confined command can read the settings files.",
	},
	{
		Name: KeyAPI, Kind: Text, Default: opensandbox.APILifecycle, Choices: []string{opensandbox.APILifecycle, opensandbox.APIRun}, order: fixed{},
		Meaning: "Which of its two interfaces is used: a sandbox per session, or one call per command.",
	},
	{
		Name: KeyPlainHTTP, Kind: Names, Default: []string{}, form: hostName, order: fixed{},
		Meaning: "Hosts that may be the OpenSandbox without TLS. Whoever is on the way can read and change everything then, the key included.",
	},
	{
		Name: KeyImage, Kind: Text, Default: opensandbox.DefaultImage, order: fixed{},
		Meaning: "The container image of a remote sandbox. It needs `bash`, and `tar` for `sandbox_workspace = \"upload\"`.",
	},
	{
		Name: KeyCPU, Kind: Text, Default: opensandbox.DefaultCPU, form: processors, order: fixed{},
		Meaning: "How many processors a remote sandbox is asked for, such as `\"2\"` or `\"500m\"`.",
	},
	{
		Name: KeySandboxMemory, Kind: Size, Default: int64(opensandbox.DefaultMemory), order: fixed{},
		Meaning: "How much memory it is asked for; by default 4 GiB.",
	},
	{
		Name: KeyWorkspace, Kind: Text, Default: opensandbox.WorkspaceNone, order: fixed{},
		Choices: []string{opensandbox.WorkspaceNone, opensandbox.WorkspaceUpload, opensandbox.WorkspaceMount},
		Meaning: "What a remote sandbox has of the workspace: an empty folder, a copy, or, of a service on this machine, the folder itself.",
	},
	{
		Name: KeyUploadSize, Kind: Size, Default: int64(opensandbox.DefaultUploadSize), order: fixed{},
		Meaning: "How much may be uploaded for one sandbox; by default 256 MiB. A larger workspace is refused, not cut.",
	},
	{
		Name: KeyUploadSkip, Kind: Names, Default: []string{}, form: skipped, order: fixed{},
		Meaning: "What is not uploaded: names of files and folders such as `\"node_modules\"`, or paths below the workspace folder such as `\".git/objects\"`.",
	},
	{
		Name: KeyOutput, Kind: Text, Default: opensandbox.OutputLines, Choices: []string{opensandbox.OutputLines, opensandbox.OutputBytes}, order: fixed{},
		Meaning: "How output comes from a remote sandbox: `\"lines\"`, stdout and stderr apart but not to the byte, or `\"bytes\"`, to the byte but with stderr in stdout.",
	},
	{
		Name: KeyNoNewPrivs, Kind: Switch, Env: "CONFINE_NO_NEW_PRIVS", order: fixed{},
		Meaning: "Whether confine itself, and so whatever it starts, can never gain privileges; see [below](#privileges).",
	},
	{
		Name: KeyExcludeTmpdir, Kind: Switch, order: only(true), note: noHostTemp,
		Meaning: "Accepted for the sake of files that have it, and without effect: the host's `TMPDIR` is never given to commands.",
	},
	{
		Name: KeyExcludeTmp, Kind: Switch, order: only(true), note: noHostTemp,
		Meaning: "The same for the host's `/tmp`.",
	},
	{
		Name: KeyProcesses, Kind: Count, Default: int64(sandbox.DefaultLimits().Processes), order: lower{},
		Meaning: "How many processes and threads there may be at once, in a session or, where the kernel counts otherwise, in a run; by default 128 per processor and at least 4096.",
	},
	{
		Name: KeyMemory, Kind: Size, order: lower{}, note: noMemoryLimit,
		Meaning: "How much memory the processes of a run may use together. Accepted, and without effect in this version: [nothing limits it](security.md#limits), and a warning says so.",
	},
	{
		Name: KeyOpenFiles, Kind: Count, Default: int64(sandbox.DefaultLimits().OpenFiles), order: lower{},
		Meaning: "How many files one process may have open; by default 65536.",
	},
	{
		Name: KeyFileSize, Kind: Size, order: lower{},
		Meaning: "How large one file may become; by default without limit.",
	},
	{
		Name: KeyTempSize, Kind: Size, order: lower{bounded: true},
		Meaning: "How much the private `/tmp` of a session holds, and as much again the shared memory of a run; by default a quarter of the memory each.",
	},
}

// Providers lists what the key provider accepts.
var Providers = []string{sandbox.ProviderAuto, sandbox.ProviderBwrap, sandbox.ProviderLandlock, sandbox.ProviderSeatbelt}

// tables are the names of tables that keys are in.
var tables = []string{"limits"}

// noHostTemp is what is to be said of a setting that changes nothing.
func noHostTemp(any) string {
	return "it has no effect: commands have temporary folders of their own and never get the host's"
}

func noMemoryLimit(any) string {
	return "it has no effect: this version cannot limit the memory of a run, and results say so"
}

// keyOf finds a key by its exact name; nil if there is none.
func keyOf(name string) *Key {
	for i := range Keys {
		if Keys[i].Name == name {
			return &Keys[i]
		}
	}
	return nil
}

// KeyNames lists the names of all keys.
func KeyNames() []string {
	names := make([]string, len(Keys))
	for i, k := range Keys {
		names[i] = k.Name
	}
	return names
}
