package sandbox

import (
	"maps"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// environment returns what Environment makes as a map.
func environment(t *testing.T, host []string, request map[string]string) (vars map[string]string, dropped []string) {
	t.Helper()
	env, dropped := Environment(host, request)
	if !slices.IsSorted(env) || !slices.IsSorted(dropped) {
		t.Errorf("not sorted: %q, %q", env, dropped)
	}
	vars = map[string]string{}
	for _, entry := range env {
		name, value, _ := strings.Cut(entry, "=")
		if _, twice := vars[name]; twice {
			t.Errorf("%s comes twice", name)
		}
		vars[name] = value
	}
	return vars, dropped
}

func TestEnvironmentKeeps(t *testing.T) {
	for _, entry := range []string{
		"PATH=/usr/bin:/bin", "HOME=/home/u", "USER=u", "LANG=de_DE.UTF-8", "TZ=Asia/Tokyo", "SHELL=/bin/zsh",
		"MONKEY=1", "KEYBOARD_LAYOUT=de", "TOKENIZERS_PARALLELISM=false", "COLORTERM=truecolor", "GOPATH=/go",
		"GIT_AUTHOR_NAME=A U Thor", "GIT_AUTHOR_EMAIL=a@example.invalid", "GOPRIVATE=example.invalid", "COMPASS=n", "BYPASS=1",
		"MAX_TOKENS=100", "CLAUDE_CODE_MAX_OUTPUT_TOKENS=100", "PATH_SEPARATOR=:", "PATTERN=x", "COMPAT_PAT_X=1",
		"XDG_CONFIG_HOME=/c", "XDG_SESSION_ID=3", "SSH_CONNECTION=1.2.3.4 5 6.7.8.9 22", "JAVA_HOME=/j", "NVM_DIR=/n",
		"VIRTUAL_ENV=/v", "PYTHONPATH=/p", "CARGO_HOME=/c", "RUSTC_WRAPPER=sccache", "GOFLAGS=-mod=vendor", "CC=clang",
		"http_proxy=http://proxy.example.invalid:3128", "NO_PROXY=localhost", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
		"REPO=ssh://git@example.invalid/x.git", "DATABASE_URL=postgres://localhost:5432/db", "EMPTY=", "EQUALS=a=b=c", "LEFT=a:b@c",
		"NEWLINE=a\nb", "LDFLAGS=-s", "KEYMAP=x", "DISPLAYNAME=x", "TMPDIR=/var/tmp", "_JAVA_AWT_WM_NONREPARENTING=1",
	} {
		name, value, _ := strings.Cut(entry, "=")
		vars, dropped := environment(t, []string{entry}, nil)
		if got, ok := vars[name]; !ok || got != value || len(dropped) != 0 {
			t.Errorf("%q became %q (%v), dropped %q", entry, got, ok, dropped)
		}
	}
}

func TestEnvironmentDrops(t *testing.T) {
	for _, entry := range []string{
		// secrets by name
		"GITHUB_TOKEN=x", "AWS_SECRET_ACCESS_KEY=x", "AWS_ACCESS_KEY_ID=x", "OPENAI_API_KEY=x", "NPM_TOKEN=x", "DB_PASSWORD=x",
		"PASSPHRASE=x", "GITHUB_PAT=x", "AZURE_DEVOPS_EXT_PAT=x", "GOOGLE_APPLICATION_CREDENTIALS=/x", "SESSION_COOKIE=x", "PGPASSWORD=x",
		"MYSQL_PWD=x", "DB_PWD=x", "SSHPASS=x", "SERVICE_PASS=x", "OPENAI_APIKEY=x", "openaiApiKey=x", "githubToken=x", "gh_token=x",
		"npm_config_//registry.example.invalid/:_authToken=x", "API_KEY2=x", "TOKEN1=x", "API_TOKENS=x", "BASIC_AUTH=x", "CI_JOB_JWT=x",
		"GHTOKEN=x", "DBPASSWORD=x", "NPM_CONFIG_OTP=x", "CLIENT_SECRETS=x", "WALLET_MNEMONIC=x",
		// secrets by value
		"DATABASE_URL=postgres://u:hunter2@db/x", "https_proxy=http://me:pw@proxy:3128", "REDIS_URL=redis://:pw@cache",
		"CONNECTION=Server=x;Password=y", "CONN=host=x user=y password=z", "JDBC=jdbc:postgresql://h/d?user=u&password=p",
		"PEM=-----BEGIN RSA PRIVATE KEY-----\nMII", "PEM=-----BEGIN PRIVATE KEY-----", "X=ghp_abcdefghijklmnopqrst12345",
		"HEADER=Authorization: Bearer abc", "MAVEN_OPTS=-Djavax.net.ssl.keyStorePassword=changeit",
		"SAS=https://x/?token=abc", "SLACK_WEBHOOK_URL=x", "DB_PW=x", "INDEX=https://0123456789abcdef0123@h/simple",
		"NOTIFY=https://hooks.slack.com/services/T0/B0/x", "STRIPE=sk_live_0123456789ab", "X=sk-proj-abcdefghijklmnopqrstuv",
		// pointers
		"SSH_AUTH_SOCK=/x", "SSH_ASKPASS=/x", "KUBECONFIG=/x", "DOCKER_HOST=unix:///x", "DBUS_SESSION_BUS_ADDRESS=unix:path=/x",
		"XAUTHORITY=/x", "DISPLAY=:0", "WAYLAND_DISPLAY=wayland-0", "TMUX=/tmp/x,1,0", "NVIM=/run/x", "NVIM_LISTEN_ADDRESS=/x",
		"VSCODE_IPC_HOOK_CLI=/x", "VSCODE_GIT_ASKPASS_MAIN=/x", "GIT_ASKPASS=/x", "XDG_RUNTIME_DIR=/run/user/1000", "NOTIFY_SOCKET=/x",
		// hijack variables
		"LD_PRELOAD=/x", "LD_AUDIT=/x", "LD_LIBRARY_PATH=/x", "DYLD_INSERT_LIBRARIES=/x", "BASH_ENV=/x", "ENV=/x",
		"BASH_FUNC_git%%=() { :; }", "PROMPT_COMMAND=x", "SHELLOPTS=xtrace", "PS4=$(x)", "CDPATH=/x", "NODE_OPTIONS=--require /x",
		"PERL5OPT=-Mx", "RUBYOPT=-rx", "JAVA_TOOL_OPTIONS=-javaagent:x", "PYTHONSTARTUP=/x", "LESSOPEN=|x", "GIT_DIR=/x",
		"GIT_SSH_COMMAND=x", "GIT_EXTERNAL_DIFF=x", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=core.fsmonitor", "GIT_CONFIG_VALUE_0=x",
		"GIT_CONFIG_PARAMETERS='core.pager=x'", "MAKEFLAGS= -j --jobserver-auth=3,4",
		// waits for a person
		"EDITOR=code --wait", "VISUAL=vim", "GIT_EDITOR=x", "GIT_SEQUENCE_EDITOR=x", "BROWSER=x", "FORCE_COLOR=1",
		// confine's own
		"CONFINE_SANDBOX_MODE=danger-full-access", "CONFINE_SANDBOX_API_KEY=x", "CONFINE_X=1",
	} {
		name, _, _ := strings.Cut(entry, "=")
		vars, dropped := environment(t, []string{entry}, nil)
		if value, ok := vars[name]; ok || !slices.Equal(dropped, []string{name}) {
			t.Errorf("%q became %q, dropped %q", entry, value, dropped)
		}
	}
}

func TestEnvironmentLeavesOutTheServersShell(t *testing.T) {
	vars, dropped := environment(t, []string{"PWD=/x", "OLDPWD=/y", "SHLVL=3", "_=/usr/bin/confine"}, nil)
	for _, name := range []string{"PWD", "OLDPWD", "SHLVL", "_"} {
		if _, ok := vars[name]; ok {
			t.Errorf("%s stayed", name)
		}
	}
	if len(dropped) != 0 {
		t.Errorf("dropped %q", dropped)
	}
}

func TestEnvironmentOverrides(t *testing.T) {
	want := map[string]string{
		"NO_COLOR": "1", "TERM": "dumb", "PAGER": "cat", "GIT_PAGER": "cat", "MANPAGER": "cat",
		"GIT_TERMINAL_PROMPT": "0", "GCM_INTERACTIVE": "never",
	}
	vars, dropped := environment(t, []string{"TERM=xterm-256color", "PAGER=less", "GIT_PAGER=delta"}, nil)
	if !maps.Equal(vars, want) || len(dropped) != 0 {
		t.Errorf("got %q, dropped %q", vars, dropped)
	}
}

func TestEnvironmentLocale(t *testing.T) {
	tests := []struct {
		name          string
		host, request []string
		want          map[string]string // an empty value means that the name is absent
	}{
		{"all is split", []string{"LC_ALL=de_DE.UTF-8", "LC_TIME=fr_FR.UTF-8", "LANG=es_ES.UTF-8"}, nil, map[string]string{
			"LC_ALL": "", "LC_MESSAGES": "C", "LC_CTYPE": "de_DE.UTF-8", "LC_TIME": "de_DE.UTF-8", "LC_COLLATE": "de_DE.UTF-8",
			"LC_NUMERIC": "de_DE.UTF-8", "LC_MONETARY": "de_DE.UTF-8", "LANG": "es_ES.UTF-8"}},
		{"an empty all means none", []string{"LC_ALL=", "LC_CTYPE=C.UTF-8", "LANG=fr_FR"}, nil, map[string]string{
			"LC_ALL": "", "LC_MESSAGES": "C", "LC_CTYPE": "C.UTF-8", "LC_TIME": "", "LANG": "fr_FR"}},
		{"English stays as it is", []string{"LC_ALL=en_GB.UTF-8", "LANG=fr_FR.UTF-8"}, nil, map[string]string{
			"LC_ALL": "en_GB.UTF-8", "LC_MESSAGES": "", "LC_CTYPE": "", "LANG": "fr_FR.UTF-8"}},
		{"so does C", []string{"LANG=C.UTF-8"}, nil, map[string]string{"LC_ALL": "", "LC_MESSAGES": "", "LANG": "C.UTF-8"}},
		{"so do English messages", []string{"LC_MESSAGES=en_US", "LANG=fr_FR.UTF-8"}, nil, map[string]string{"LC_MESSAGES": "en_US", "LC_ALL": ""}},
		{"so does nothing", nil, nil, map[string]string{"LC_MESSAGES": "", "LANG": ""}},
		{"other languages are not English", []string{"LANG=enm", "LANGUAGE=ja"}, nil, map[string]string{"LC_MESSAGES": "C", "LANGUAGE": ""}},
		{"language alone", []string{"LANG=ja_JP.UTF-8", "LANGUAGE=ja:de", "LC_MESSAGES=ja_JP.UTF-8"}, nil, map[string]string{
			"LANG": "ja_JP.UTF-8", "LANGUAGE": "", "LC_MESSAGES": "C", "LC_CTYPE": ""}},
		{"the request is obeyed", []string{"LC_ALL=de_DE.UTF-8"}, []string{"LC_ALL=fr_FR.UTF-8", "LANGUAGE=fr"}, map[string]string{
			"LC_ALL": "fr_FR.UTF-8", "LANGUAGE": "fr", "LC_MESSAGES": "C"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			request := map[string]string{}
			for _, entry := range test.request {
				name, value, _ := strings.Cut(entry, "=")
				request[name] = value
			}
			vars, dropped := environment(t, test.host, request)
			for name, want := range test.want {
				if got, ok := vars[name]; got != want || ok != (want != "") {
					t.Errorf("%s = %q (%v), want %q", name, got, ok, want)
				}
			}
			if len(dropped) != 0 {
				t.Errorf("dropped %q", dropped)
			}
		})
	}
}

func TestEnvironmentRequest(t *testing.T) {
	vars, dropped := environment(t,
		[]string{"GITHUB_TOKEN=host", "TERM=xterm", "A=host", "SSH_AUTH_SOCK=/x"},
		map[string]string{
			"GITHUB_TOKEN": "given", "TERM": "xterm", "A": "given", "LD_PRELOAD": "/lib.so", "BASH_ENV": "/rc", "NEW": "a=b",
			"CONFINE_SANDBOX_MODE": "danger-full-access", "": "x", "A=B": "x", "NUL": "a\x00b", "C\x00D": "x", "LINE\nX": "x", "\xff": "x",
		})
	for name, want := range map[string]string{"GITHUB_TOKEN": "given", "TERM": "xterm", "A": "given", "LD_PRELOAD": "/lib.so", "BASH_ENV": "/rc", "NEW": "a=b"} {
		if vars[name] != want {
			t.Errorf("%s = %q, want %q", name, vars[name], want)
		}
	}
	want := []string{`""`, `"A=B"`, `"C\x00D"`, `"LINE\nX"`, `"\xff"`, "CONFINE_SANDBOX_MODE", "NUL", "SSH_AUTH_SOCK"}
	slices.Sort(want)
	if !slices.Equal(dropped, want) {
		t.Errorf("dropped %q, want %q", dropped, want)
	}
}

func TestEnvironmentOddHostEntries(t *testing.T) {
	vars, dropped := environment(t, []string{"A=first", "A=second", "", "NOEQUALS", "=x", "B=a\x00b", "C\x1b[2J=x", "GITHUB_TOKEN=x", "GITHUB_TOKEN=y"}, nil)
	if vars["A"] != "first" {
		t.Errorf("A = %q; programs see the first of two", vars["A"])
	}
	if want := []string{`"C\x1b[2J"`, "B", "GITHUB_TOKEN", "NOEQUALS"}; runtime.GOOS != "windows" && !slices.Equal(dropped, want) {
		t.Errorf("dropped %q, want %q", dropped, want)
	}
	if _, dropped := environment(t, nil, map[string]string{"CONFINE_" + strings.Repeat("x", 5000): ""}); len(dropped) != 1 || len(dropped[0]) > 200 {
		t.Errorf("a long name is reported in full")
	}
}

func TestEnvironmentIsDeterministic(t *testing.T) {
	host := []string{"B=1", "A=2", "LC_ALL=C.UTF-8", "X_TOKEN=1", "Y_TOKEN=2"}
	request := map[string]string{"C": "3", "D": "4", "CONFINE_A": "5", "CONFINE_B": "6"}
	env, dropped := Environment(host, request)
	for range 20 {
		slices.Reverse(host)
		again, droppedAgain := Environment(host, request)
		if !slices.Equal(again, env) || !slices.Equal(droppedAgain, dropped) {
			t.Fatalf("%q, %q then %q, %q", env, dropped, again, droppedAgain)
		}
	}
}

// TestEnvironmentSpeaksEnglish asks a real program, in case a locale is set
// that has its own messages, and checks that UTF-8 still works.
func TestEnvironmentSpeaksEnglish(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash")
	}
	cmd := exec.Command(bash, "-c", `x=€; echo ${#x}; echo x > /proc/version/x`)
	cmd.Env, _ = Environment([]string{"PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8", "LANGUAGE=de:fr"}, nil)
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.HasPrefix(string(out), "1\n") || !strings.Contains(string(out), "Not a directory") {
		t.Errorf("%v: %q", err, out)
	}
}

func BenchmarkEnvironment(b *testing.B) {
	host := []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8", "GITHUB_TOKEN=x"}
	for range 60 {
		host = append(host, "SOME_NAME_"+strings.Repeat("X", len(host))+"=/a/value/of/some/length/that/is/typical/for/a/variable")
	}
	for b.Loop() {
		Environment(host, nil)
	}
}
