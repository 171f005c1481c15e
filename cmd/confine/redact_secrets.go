package main

import (
	"regexp"
	"strings"

	"github.com/confine-dev/confine/cmd/confine/config"
	"github.com/confine-dev/confine/sandbox"
)

// shortestSecret is the length from which a value that looks secret by its name is
// looked for everywhere: a shorter one is found in ordinary words.
const shortestSecret = 6

// argument is one of a command line, in quotes, also in those of a text, or without.
const argument = `(?:\\"[^"\\]*\\"|"[^"]*"|'[^']*'|[^\s"'\\]+)`

// secretShapes are secrets that are found without being known. What the first and
// the second group match stays.
var secretShapes = []*regexp.Regexp{
	privateKey,
	regexp.MustCompile(`(?i)((?:^|[^\pL\pN])(?:(?:proxy-)?authorization|(?:set-)?cookie)\\?["']?\s*[:=]\s*)[^\r\n]+`),
	regexp.MustCompile(`(?i)(\bbearer\s+)[^\s"'\\]+`),
	regexp.MustCompile(`(://)[^/?#\s"']+(@)`), // who logs in, and by what
	regexp.MustCompile(`(?i)(--[\w-]*(?:passw(?:or)?d|passphrase|secret|token|key|credentials?|auth)\\?["']?(?:\s+|,\s*))` + argument),
	regexp.MustCompile(`((?:^|[\s"'])(?:-[A-Za-z]*u|--user|--proxy-user)\\?["']?[\s=,]*\\?["']?[^\s"':,\\]*:)[^\s"'\\]+`), // curl -u me:password
	regexp.MustCompile(`((?:\bsshpass\s+-p|\bredis-cli\s(?:[^|;&]*\s)?-a|\b(?:docker|podman|helm)\s(?:[^|;&]*\s)?login\s(?:[^|;&]*\s)?-p)\s*)` + argument),
	regexp.MustCompile(`(\bmysql\w*\s(?:[^|;&]*\s)?-p)[^\s"'\\]+`),
	regexp.MustCompile(`(\bpass:)[^\s"'\\]+`), // openssl -passin pass:password
	regexp.MustCompile(`(://hooks\.slack\.com/)[^\s"'\\]+`),
	regexp.MustCompile(`(/api/webhooks/)[^\s"'\\]+`),
	regexp.MustCompile(`(?i)([\w.-]*(?:passw(?:or)?d|passphrase|passcode|secret|token|api[_-]?key|access[_-]?key|account[_-]?key|private[_-]?key|credentials?|signature|_pass|_pwd|\bsig|\bpwd|\bauth|\bkey)\\?["']?\s*[=:]\s*)` +
		`(?:\\"(?:[^"\\]|\\[^"])*\\"|"(?:[^"\\]|\\.)*"|'[^']*'|[^\s"'&;,]+)`),
	regexp.MustCompile(`\b(?:gh[opsur]_|github_pat_|glpat-|npm_|sk-|[rs]k_(?:live|test)_|xox[abeprs]-|AKIA|ASIA|AIza|hf_|pypi-)[A-Za-z0-9_-]{10,}`),
	regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{10,}(?:\.[A-Za-z0-9_-]+)*`),
	regexp.MustCompile(`^[A-Za-z0-9+/]{40,}={0,2}$`), // a line of a key without its beginning
}

// privateKey is the one shape that has many lines; without its end, all that follows
// belongs to it.
var privateKey = regexp.MustCompile(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)`)

// loginPassword finds the password in an address.
var loginPassword = regexp.MustCompile(`://[^/?#\s@:]*:([^/?#\s]{4,})@`)

// environmentSecrets are the values of variables that look secret.
func environmentSecrets(environ []string) []string {
	var secrets []string
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if name != "PWD" && len(value) >= shortestSecret && sandbox.LooksSecret(name, value) { // PWD is a folder here
			secrets = append(secrets, value)
			for _, login := range loginPassword.FindAllStringSubmatch(value, -1) {
				secrets = append(secrets, login[1])
			}
		}
	}
	return secrets
}

// keyLine finds the key in a settings file that has mistakes elsewhere, or right there.
var keyLine = regexp.MustCompile(`(?mi)^\s*["']?` + config.KeyAPIKey + `["']?\s*=\s*(.+?)\s*$`)

// settingsSecrets are the secret values of the settings, whatever is wrong with the
// files.
func settingsSecrets(paths config.Paths) []string {
	var secrets []string
	for _, file := range []string{paths.SettingsFile(), paths.ManagedFile} {
		data, err := readEnd(file, 1<<20) // what is longer is refused as settings
		if err != nil {
			continue // then nothing else of it can be in a report
		}
		for _, match := range keyLine.FindAllStringSubmatch(string(data), -1) {
			value, _, _ := strings.Cut(match[1], " #")
			secrets = append(secrets, strings.Trim(strings.TrimSpace(value), `"'`))
		}
	}
	if source, err := config.Open(config.Options{Paths: paths}); err == nil {
		secrets = append(secrets, source.Base().Settings.Remote.APIKey)
		source.Close()
	}
	return secrets
}
