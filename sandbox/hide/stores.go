package hide

// Store is a group of places that usually hold credentials of one kind.
type Store struct {
	What   string // for people
	Reason string // why these and not more or less

	// Home are paths below the home folder, System absolute ones. A name that ends
	// in * stands for every one that begins like it.
	Home, System []string

	// Mixed are files below the home folder that are configuration as well:
	// hidden only with a credential in them (see credentialMarks).
	Mixed []string

	// Folders are those below the home folder of which everything is hidden but
	// names that match one of Ordinary (path.Match).
	Folders, Ordinary []string

	// Variables are the variables of the environment that name such a place, each
	// with what to hide in the folder it names; empty: the place itself.
	Variables [][2]string
}

// Stores are all that is hidden by default.
var Stores = []Store{
	{
		What:     "SSH keys",
		Reason:   "private keys can have any name, so all is hidden but what is known to be none: git over SSH and ssh-keygen still find configuration and known hosts",
		Folders:  []string{".ssh"},
		Ordinary: []string{"config", "config.d", "conf.d", "known_hosts*", "authorized_keys*", "allowed_signers", "*.pub", "rc"},
		System:   []string{"/etc/ssh/ssh_host_*"},
	},
	{
		What:      "GnuPG secret keys",
		Reason:    "public keys and configuration stay readable, so that signatures can be checked",
		Home:      []string{".gnupg/private-keys-v1.d", ".gnupg/secring.gpg", ".gnupg/openpgp-revocs.d", ".gnupg/random_seed"},
		Variables: [][2]string{{"GNUPGHOME", "private-keys-v1.d"}, {"GNUPGHOME", "secring.gpg"}},
	},
	{
		What:   "cloud accounts",
		Reason: "configuration and credentials of these tools cannot be told apart, or lie in caches beside one another; without the network they are of no use to a command",
		Home: []string{".aws", ".azure", ".config/gcloud", ".boto", ".s3cfg", ".oci", ".aliyun", ".bluemix", ".config/doctl", ".config/hcloud", ".config/linode-cli",
			".config/scw", ".config/rclone", ".vault-token", ".fly", ".config/fly", ".local/share/com.vercel.cli", ".config/netlify", ".netlify", ".config/heroku",
			".databrickscfg", ".snowflake", ".cloudflared", ".wrangler", ".config/.wrangler", ".config/stripe", ".ngrok2", ".config/ngrok",
			".terraform.d/credentials.tfrc.json", ".pulumi/credentials.json", ".config/sops", ".config/age", ".kaggle", ".huggingface/token", ".cache/huggingface/token",
			".cache/huggingface/stored_tokens", ".config/configstore/firebase-tools.json", ".railway", ".supabase/access-token", ".expo/state.json", ".circleci", ".doppler", ".infisical",
			".modal.toml", ".tsh", ".step/secrets", ".config/argocd", ".rancher"},
		Mixed: []string{".terraformrc", ".sentryclirc"},
		Variables: [][2]string{{"AWS_SHARED_CREDENTIALS_FILE", ""}, {"AWS_CONFIG_FILE", ""}, {"GOOGLE_APPLICATION_CREDENTIALS", ""}, {"CLOUDSDK_CONFIG", ""},
			{"AZURE_CONFIG_DIR", ""}},
	},
	{
		What:      "clusters and container registries",
		Reason:    "the same; of Docker only the file with the registries' passwords",
		Home:      []string{".kube", ".docker/config.json", ".dockercfg", ".config/containers/auth.json", ".config/helm/registry", ".talos", ".minikube/profiles", ".minikube/certs"},
		System:    []string{"/etc/kubernetes/*.conf", "/etc/rancher/k3s/k3s.yaml"},
		Variables: [][2]string{{"KUBECONFIG", ""}, {"DOCKER_CONFIG", "config.json"}, {"REGISTRY_AUTH_FILE", ""}},
	},
	{
		What:      "code hosts and passwords for the web",
		Reason:    "only the files with tokens, so that git and its helpers find their configuration",
		Home:      []string{".git-credentials", ".config/git/credentials", ".netrc", ".config/gh/hosts.yml", ".config/hub", ".config/glab-cli", ".config/tea", ".gcm/store", ".subversion/auth", ".authinfo", ".authinfo.gpg"},
		Variables: [][2]string{{"NETRC", ""}, {"GH_CONFIG_DIR", "hosts.yml"}},
	},
	{
		What:   "package registries",
		Reason: "package managers need their configuration to work offline, too: a file is hidden only while it has a token or password",
		Home:   []string{".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials", ".local/share/gem/credentials", ".m2/settings-security.xml", ".config/composer/auth.json", ".composer/auth.json", ".hex/hex.config", ".local/share/uv/credentials"},
		Mixed: []string{".npmrc", ".yarnrc", ".yarnrc.yml", ".pypirc", ".pip/pip.conf", ".config/pip/pip.conf", ".config/pypoetry/auth.toml", ".config/uv/uv.toml",
			".m2/settings.xml", ".gradle/gradle.properties", ".bundle/config", ".nuget/NuGet/NuGet.Config", ".condarc", ".config/go/env", ".bunfig.toml"},
		Variables: [][2]string{{"CARGO_HOME", "credentials"}, {"CARGO_HOME", "credentials.toml"}},
	},
	{
		What:   "password stores and wallets",
		Reason: "what protects them is often a password that is typed elsewhere on this machine",
		Home: []string{".password-store", ".local/share/gopass", ".local/share/keyrings", ".local/share/kwalletd", ".gnome2/keyrings", ".config/op", ".config/1Password", ".op",
			".config/Bitwarden", ".config/Bitwarden CLI", ".local/share/rbw", ".local/share/lpass", ".lpass", ".vnc/passwd", ".smbcredentials", ".davfs2/secrets",
			".bitcoin", ".ethereum/keystore", ".electrum/wallets", ".config/solana", ".foundry/keystores", ".brownie/accounts", ".sui/sui_config", ".near-credentials",
			".config/Exodus", ".config/Ledger Live"},
		Variables: [][2]string{{"PASSWORD_STORE_DIR", ""}},
	},
	{
		What:   "browser profiles, mail and chat",
		Reason: "cookies and sessions; a browser that a command starts takes a profile of its own",
		Home: []string{".mozilla", ".config/mozilla", ".librewolf", ".config/google-chrome", ".config/google-chrome-beta", ".config/google-chrome-unstable", ".config/chromium",
			".config/BraveSoftware", ".config/microsoft-edge", ".config/vivaldi", ".config/opera", "snap/firefox", "snap/chromium",
			".var/app/org.mozilla.firefox", ".var/app/com.google.Chrome", ".var/app/org.chromium.Chromium", ".var/app/com.brave.Browser",
			".thunderbird", ".config/evolution", ".local/share/evolution", ".msmtprc", ".mbsyncrc", ".fetchmailrc", ".config/Slack", ".config/discord", ".config/Signal", ".config/Element",
			".zen", ".waterfox", ".offlineimaprc", ".purple/accounts.xml", ".weechat/sec.conf", ".config/weechat/sec.conf", ".config/filezilla", ".local/share/remmina", ".config/remmina"},
	},
	{
		What:   "databases",
		Reason: "files made for passwords; configuration only with one in it",
		Home:   []string{".pgpass", ".mylogin.cnf", ".local/share/DBeaverData"}, Mixed: []string{".my.cnf", ".pg_service.conf", ".odbc.ini", ".snowsql/config", ".clickhouse-client/config.xml"},
		Variables: [][2]string{{"PGPASSFILE", ""}},
	},
	{
		What:   "histories of shells and tools",
		Reason: "passwords and tokens are typed there; no command that is not interactive reads them",
		Home: []string{".bash_history", ".zsh_history", ".zsh_sessions", ".zhistory", ".histfile", ".sh_history", ".ksh_history", ".local/share/fish/fish_history",
			".local/share/atuin", ".python_history", ".node_repl_history", ".psql_history", ".mysql_history", ".sqlite_history", ".rediscli_history", ".mongodb",
			".irb_history", ".lesshst", ".local/state/bash/history", ".local/state/zsh/history", ".local/share/nushell/history.txt", ".config/nushell/history.txt"},
		Variables: [][2]string{{"HISTFILE", ""}},
	},
	{
		What:   "agents' own tokens",
		Reason: "the model that proposes commands must not take its own operator's account; their settings and instructions stay readable",
		Home: []string{".codex/auth.json", ".codex/history.jsonl", ".claude/.credentials.json", ".claude.json", ".claude/history.jsonl", ".gemini/oauth_creds.json", ".gemini/google_accounts.json",
			".qwen/oauth_creds.json", ".config/github-copilot", ".copilot/config.json", ".config/anthropic", ".anthropic", ".config/openai", ".openai", ".local/share/opencode/auth.json",
			".config/goose/secrets.yaml", ".config/io.datasette.llm/keys.json", ".config/Cursor/User/globalStorage/state.vscdb", ".config/Code/User/globalStorage/state.vscdb",
			".config/Code/User/globalStorage/state.vscdb.backup", ".config/Cursor/User/globalStorage/state.vscdb.backup", ".config/sourcegraph", ".config/amp", ".local/share/amp/secrets.json",
			".config/cursor/auth.json", ".factory/auth.json", ".augment/session.json", ".cline/data/secrets.json", ".pi/agent/auth.json", ".config/fabric/.env", ".hermes/.env", ".openclaw/credentials",
			".config/Windsurf/User/globalStorage/state.vscdb", ".config/VSCodium/User/globalStorage/state.vscdb", ".config/Code - Insiders/User/globalStorage/state.vscdb"},
		Mixed: []string{".continue/config.json", ".continue/config.yaml", ".aider.conf.yml", ".gemini/.env", ".config/opencode/opencode.json", ".claude/settings.json", ".codex/config.toml",
			".codewhale/config.toml", ".deepseek/config.toml", ".openclaw/openclaw.json", ".config/crush/crush.json", ".local/share/crush/crush.json", ".grok/user-settings.json",
			".kilocode/config.json", ".config/aichat/config.yaml", ".config/mods/mods.yml"},
		Variables: [][2]string{{"CODEX_HOME", "auth.json"}, {"CLAUDE_CONFIG_DIR", ".credentials.json"}},
	},
	{
		What:   "secrets of the system",
		Reason: "for root: nobody else can read them",
		System: []string{"/etc/shadow*", "/etc/gshadow*", "/etc/ssl/private", "/etc/krb5.keytab", "/etc/wireguard", "/etc/NetworkManager/system-connections", "/var/lib/sss/secrets"},
	},
}

// credentialMarks are what a Mixed file has, in any case of letters, if it holds a
// credential.
var credentialMarks = []string{"_auth", "authtoken", "authident", "password", "passwd", "api_key", "apikey", "api-key", "secret", "token"}
