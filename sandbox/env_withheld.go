package sandbox

import (
	"regexp"
	"strings"
	"sync"
	"unicode"
)

// withheld reports whether a variable of the host is kept from commands. What
// is missing can be given by name in the request, so doubt means withheld.
func withheld(name, value string) bool {
	upper := strings.ToUpper(name)
	if withheldNames()[upper] || secretName(name) || secretValue(value) {
		return true
	}
	for _, prefix := range withheldPrefixes {
		if strings.HasPrefix(upper, prefix) {
			return true
		}
	}
	return false
}

// LooksSecret reports whether a variable, or a piece of text if the name is empty,
// looks as if it held something that nobody else may know. Doubt means that it does.
func LooksSecret(name, value string) bool { return secretName(name) || secretValue(value) }

// withheldPrefixes name families of which every member is withheld.
var withheldPrefixes = []string{
	ownPrefix,
	"LD_", "DYLD_", // the dynamic loader
	"BASH_FUNC_",                           // exported functions shadow programs
	"GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_", // see GIT_CONFIG_COUNT below
	"VSCODE_GIT_", "VSCODE_IPC_", "VSCODE_INSPECTOR_", // reach into the editor
}

var withheldNames = lazySet(
	// Pointers: whoever is reached acts with the person's rights.
	`SSH_AUTH_SOCK SSH_AGENT_PID SSH_ASKPASS SSH_ASKPASS_REQUIRE SUDO_ASKPASS GIT_ASKPASS GPG_AGENT_INFO
	 GNOME_KEYRING_CONTROL GNOME_KEYRING_PID KRB5CCNAME KRB5_KTNAME
	 KUBECONFIG DOCKER_HOST DOCKER_CONFIG DOCKER_CONTEXT DOCKER_CERT_PATH CONTAINER_HOST CONTAINER_SSHKEY BUILDKIT_HOST
	 DBUS_SESSION_BUS_ADDRESS DBUS_SYSTEM_BUS_ADDRESS DBUS_STARTER_ADDRESS AT_SPI_BUS_ADDRESS SESSION_MANAGER
	 DISPLAY XAUTHORITY WAYLAND_DISPLAY WAYLAND_SOCKET SWAYSOCK I3SOCK HYPRLAND_INSTANCE_SIGNATURE
	 PULSE_SERVER PULSE_COOKIE PIPEWIRE_REMOTE XDG_RUNTIME_DIR
	 TMUX TMUX_PANE STY KITTY_LISTEN_ON KITTY_PUBLIC_KEY WEZTERM_UNIX_SOCKET ALACRITTY_SOCKET ZELLIJ ZELLIJ_SESSION_NAME
	 NVIM NVIM_LISTEN_ADDRESS EMACS_SOCKET_NAME EMACS_SERVER_FILE NOTIFY_SOCKET LISTEN_FDS LISTEN_PID LISTEN_FDNAMES
	 AWS_CONTAINER_CREDENTIALS_RELATIVE_URI AWS_SHARED_CREDENTIALS_FILE AWS_CONFIG_FILE CLOUDSDK_CONFIG AZURE_CONFIG_DIR
	 NPM_CONFIG_USERCONFIG NETRC PGPASSFILE PGSERVICEFILE SSLKEYLOGFILE`,
	// Secrets that no rule about words finds.
	`SSHPASS DBPASS USERPASS MYSQL_PWD REDISCLI_AUTH HTTPIE_SESSION`,
	// Loaders and libraries.
	`GCONV_PATH GETCONF_DIR HOSTALIASES RESOLV_HOST_CONF MALLOC_TRACE NIS_PATH OPENSSL_CONF OPENSSL_ENGINES
	 OPENSSL_MODULES GTK_MODULES GIO_EXTRA_MODULES`,
	// Shells.
	`BASH_ENV ENV SHELLOPTS BASHOPTS BASH_COMPAT BASH_LOADABLES_PATH BASH_XTRACEFD PROMPT_COMMAND PS0 PS4
	 IFS CDPATH GLOBIGNORE EXECIGNORE ZDOTDIR FPATH`,
	// Interpreters and build tools told to load or run something.
	`NODE_OPTIONS NODE_REPL_EXTERNAL_MODULE ELECTRON_RUN_AS_NODE PYTHONSTARTUP PYTHONINSPECT PYTHONBREAKPOINT
	 PERL5OPT PERL5DB RUBYOPT LUA_INIT JAVA_TOOL_OPTIONS _JAVA_OPTIONS JDK_JAVA_OPTIONS
	 LESSOPEN LESSCLOSE MAKEFLAGS MFLAGS GNUMAKEFLAGS MAKELEVEL CARGO_MAKEFLAGS`,
	// git: another repository, another program in its place, or settings that
	// may hold authorization headers and are of use only all together.
	`GIT_CONFIG GIT_CONFIG_COUNT GIT_CONFIG_PARAMETERS
	 GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_COMMON_DIR GIT_OBJECT_DIRECTORY GIT_ALTERNATE_OBJECT_DIRECTORIES
	 GIT_NAMESPACE GIT_PREFIX GIT_SHALLOW_FILE GIT_GRAFT_FILE GIT_INTERNAL_SUPER_PREFIX GIT_REPLACE_REF_BASE
	 GIT_SSH GIT_SSH_COMMAND GIT_PROXY_COMMAND GIT_EXTERNAL_DIFF GIT_EXEC_PATH GIT_TEMPLATE_DIR`,
	// What waits for a person, or paints for one.
	`EDITOR VISUAL GIT_EDITOR GIT_SEQUENCE_EDITOR BROWSER FORCE_COLOR CLICOLOR_FORCE`,
)

// lazySet makes a set of words at first use, as lazyRegexp does.
func lazySet(lists ...string) func() map[string]bool {
	return sync.OnceValue(func() map[string]bool {
		set := map[string]bool{}
		for _, list := range lists {
			for _, word := range strings.Fields(list) {
				set[word] = true
			}
		}
		return set
	})
}

// secretWords make a name secret when they are one of its words.
var secretWords = lazySet(`KEY KEYS TOKEN TOKENS SECRET SECRETS PASSWORD PASSWORDS PASSWD PASSPHRASE PASSCODE PASS PWD
	CRED CREDS CREDENTIAL CREDENTIALS COOKIE COOKIES AUTH AUTHORIZATION OAUTH BEARER JWT OTP TOTP MNEMONIC PW
	WEBHOOK WEBHOOKS`) // the address of a webhook is all that it takes to use it

// secretEndings make a word secret that was run together from several.
var secretEndings = []string{
	"TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "CREDENTIALS", "COOKIE",
	"APIKEY", "APIKEYS", "ACCESSKEY", "SECRETKEY", "PRIVATEKEY", "AUTHKEY", "SSHKEY", "MASTERKEY", "SIGNINGKEY", "ENCRYPTIONKEY",
}

// secretName judges by whole words, so that MONKEY, KEYBOARD_LAYOUT,
// TOKENIZERS_PARALLELISM and GIT_AUTHOR_NAME stay.
func secretName(name string) bool {
	words := nameWords(name)
	for i, word := range words {
		last := i == len(words)-1
		switch {
		case word == "PAT":
			if last && i > 0 { // a personal access token ends so: GITHUB_PAT
				return true
			}
		case word == "TOKENS" && i > 0 && limitWords()[words[i-1]]:
		case secretWords()[word]:
			return true
		default:
			for _, ending := range secretEndings {
				if strings.HasSuffix(word, ending) {
					return true
				}
			}
		}
	}
	return false
}

// limitWords before TOKENS speak of a language model's budget.
var limitWords = lazySet(`MAX MIN OUTPUT INPUT CONTEXT THINKING`)

// nameWords splits at everything but letters and digits and where a lower-case
// letter meets an upper-case one; digits at the end of a word do not count.
func nameWords(name string) []string {
	var b strings.Builder
	previous := ' '
	for _, r := range name {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			r = ' '
		case unicode.IsUpper(r) && unicode.IsLower(previous):
			b.WriteRune(' ')
		}
		b.WriteRune(unicode.ToUpper(r))
		previous = r
	}
	words := strings.Fields(b.String())
	for i, word := range words {
		words[i] = strings.TrimRightFunc(word, unicode.IsDigit)
	}
	return words
}

// secretValues find secrets under harmless names: a password in an address or
// a connection string, a private key, and tokens that say what they are. A
// pattern is tried only on values with one of its hints, which is many
// times faster; the environment is made for every run.
var secretValues = []struct {
	hints   []string
	pattern func() *regexp.Regexp
}{
	{[]string{"@"}, lazyRegexp(`://[^/?#\s@]*:[^/?#\s@]+@`)},
	{[]string{"="}, lazyRegexp(`(?i)(?:password|passwd|passphrase|secret|apikey|api_key|accountkey|accesskey)=[^;&\s]`)},
	{[]string{"="}, lazyRegexp(`(?i)(?:^|[;&?,\s])(?:pwd|token|access_token)=[^;&\s]`)},
	{[]string{"@"}, lazyRegexp(`(?i)https?://[^/?#\s@:]{20,}@`)}, // a token in place of a user
	{[]string{"hooks.slack.com/", "/api/webhooks/"}, lazyRegexp(`://hooks\.slack\.com/|/api/webhooks/\d`)},
	{[]string{"_live_"}, lazyRegexp(`\b[rs]k_live_[A-Za-z0-9]{10}`)},
	{[]string{"-----BEGIN"}, lazyRegexp(`-----BEGIN [A-Z ]*PRIVATE KEY`)},
	{[]string{"uthorization:", "UTHORIZATION:"}, lazyRegexp(`(?i)\bauthorization: *[a-z]+ `)},
	{[]string{"gho_", "ghp_", "ghs_", "ghu_", "ghr_", "github_pat_"}, lazyRegexp(`\b(?:gh[opsur]_[A-Za-z0-9]{20}|github_pat_[A-Za-z0-9]{10})`)},
	{[]string{"glpat-", "npm_", "sk-"}, lazyRegexp(`\b(?:glpat-[A-Za-z0-9_-]{15}|npm_[A-Za-z0-9]{30}|sk-[A-Za-z0-9_-]{20})`)},
	{[]string{"xox"}, lazyRegexp(`\bxox[abeprs]-[A-Za-z0-9-]{10}`)},
	{[]string{"AKIA", "AIza", "eyJ"}, lazyRegexp(`\b(?:AKIA[A-Z0-9]{16}|AIza[A-Za-z0-9_-]{30}|eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10})`)},
}

func secretValue(value string) bool {
	for _, secret := range secretValues {
		for _, hint := range secret.hints {
			if strings.Contains(value, hint) {
				if secret.pattern().MatchString(value) {
					return true
				}
				break
			}
		}
	}
	return false
}
