package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// plantedSecrets are secrets, by the place that they are put in.
var plantedSecrets = map[string]string{
	"the key of the settings":           "settingskey0001",
	"a variable with a telling name":    "envtoken0002",
	"a password in a variable's URL":    "envurl0003",
	"a shown variable":                  "ghp_0004abcdefghijklmnopqrstuvwxyz00",
	"a shown path":                      "pathtoken0005",
	"the name of a variable":            "glpat-0006abcdefghijklmnop",
	"a setting that is refused":         "refusedurl0007",
	"a path of the settings":            "pathsetting0008",
	"a header in the log":               "headertoken0009",
	"a URL in the log":                  "logurl0010",
	"a quoted password in the log":      "log password 0011",
	"a private key in the log":          "bG9nIGtleSAwMDEy",
	"the name of the log":               "logname0013",
	"the audit file":                    "auditcommand0014",
	"a telling variable, in the log":    "envtoken0015",
	"the key of the variable":           "envkey0016",
	"the key of the settings, in a URL": "settings/key 0017",
	"the person":                        "annabel",
}

// secretWorld has secrets everywhere, and a log.
func secretWorld(t *testing.T, settings string) (w world, log string) {
	t.Helper()
	s := plantedSecrets
	w = newWorld(t)
	w.env = append(w.env, "USER="+s["the person"], "MY_TOKEN="+s["a variable with a telling name"], "OTHER_PASSWORD="+s["a telling variable, in the log"],
		"PLAIN=https://bob:"+s["a password in a variable's URL"]+"@h/x", "LANG="+s["a shown variable"],
		"PATH=/usr/local/bin:/usr/bin:/bin:/opt/x?token="+s["a shown path"], s["the name of a variable"]+"=1",
		"CONFINE_SANDBOX_API_KEY="+s["the key of the variable"])
	w.configure(t, settings)
	state := filepath.Join(w.home, ".local/state/confine")
	if err := os.MkdirAll(state, 0o700); err != nil {
		t.Fatal(err)
	}
	record := `{"command":"` + s["the audit file"] + `"}` + "\n"
	log = filepath.Join(w.work, "token="+s["the name of the log"]+".log")
	lines := strings.Join([]string{
		"time=1 level=WARN msg=\"an ordinary line\"", "Authorization: Bearer " + s["a header in the log"], "git clone https://x:" + s["a URL in the log"] + "@host/r",
		`msg="password=\"` + s["a quoted password in the log"] + `\""`, "-----BEGIN RSA PRIVATE KEY-----", s["a private key in the log"], "-----END RSA PRIVATE KEY-----",
		"echo " + s["a telling variable, in the log"], "the login was " + s["a password in a variable's URL"], s["the person"] + " in " + w.home + "/src", "GET /?k=settings%2Fkey+0017 settings/key%200017", "the last line",
	}, "\n") + "\n"
	for name, content := range map[string]string{filepath.Join(state, "audit.jsonl"): record + record, log: lines} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return w, log
}

// TestBugReportHasNoSecrets plants one in every place that a report comes from.
func TestBugReportHasNoSecrets(t *testing.T) {
	s := plantedSecrets
	for name, settings := range map[string]string{
		"settings in order":    "sandbox_api_key = \"" + s["the key of the settings"] + "\" # mine\ndeny_read = [\"/srv/" + s["the person"] + "/token=" + s["a path of the settings"] + "\"]\n",
		"a key in a URL":       "sandbox_api_key = '" + s["the key of the settings, in a URL"] + "'\n",
		"a mistake":            "sandbox_api_key = \"" + s["the key of the settings"] + "\"\nprovider = \"https://u:" + s["a setting that is refused"] + "@h\"\n",
		"a key without quotes": "sandbox_api_key = " + s["the key of the settings"] + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, log := secretWorld(t, settings)
			cmd := w.confine(t, "bug-report", "--out", "report.json", "--log", log)
			said, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(said), "read it before you send it") {
				t.Fatalf("%v: %s", err, said)
			}
			path := filepath.Join(w.work, "report.json")
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			text := string(data) + string(said)
			for place, secret := range s {
				if strings.Contains(text, secret) {
					t.Errorf("%q, of %s, is in it", secret, place)
				}
			}
			for _, known := range []string{w.home, "settings%2Fkey", "settings/key"} {
				isKey := strings.Contains(settings, "settings/key") // else it is no secret
				if strings.Contains(string(data), known) && (known == w.home || isKey) {
					t.Errorf("%q is in it", known)
				}
			}
			for _, useful := range []string{"an ordinary line", "the last line", "<user> in <home>/src", "MY_TOKEN", `"PLAIN"`, "<home>/.local/state/confine", "protocolVersion"} {
				if !strings.Contains(string(data), useful) {
					t.Errorf("%q is not in it:\n%s", useful, data)
				}
			}
			var parsed struct {
				Audit    auditReport
				Redacted map[string]int
			}
			if err := json.Unmarshal(data, &parsed); err != nil || parsed.Audit.Records != 2 || parsed.Redacted[hiddenSecret] < 8 || parsed.Redacted[hiddenHome] == 0 {
				t.Errorf("%v: %+v", err, parsed)
			}
		})
	}
}

// TestBugReportIsAFileOfItsOwn: private, and never in the place of another.
func TestBugReportIsAFileOfItsOwn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report")
	if err := writeNew(path, "one"); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	link := path + "-link"
	if err := os.Symlink(path+"-missing", link); err != nil {
		t.Skip(err)
	}
	for _, taken := range []string{path, link} {
		if err := writeNew(taken, "two"); err == nil || !strings.Contains(err.Error(), "is there already") {
			t.Errorf("%s: %v", taken, err)
		}
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != "one" {
		t.Errorf("it became %q, %v", data, err)
	}
	if _, err := os.Stat(path + "-missing"); err == nil {
		t.Error("a link was followed")
	}
}

func TestReadLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte("begin "+strings.Repeat("a secret in a line that is cut ", logBytes/16)+"\n"+strings.Repeat("line\n", 300)), 0o600); err != nil {
		t.Fatal(err)
	}
	if log := readLog(path); len(log.Lines) != 200 || log.Lines[0] != "line" || log.Error != "" {
		t.Errorf("%d lines, %q", len(log.Lines), log.Error)
	}
	if err := os.WriteFile(path, []byte(strings.Repeat("x", 2*logBytes)), 0o600); err != nil {
		t.Fatal(err)
	}
	if log := readLog(path); len(log.Lines) != 0 {
		t.Errorf("a piece of a line is told: %d", len(log.Lines))
	}
	if log := readLog(t.TempDir()); log.Error == "" {
		t.Error("a folder was read")
	}
}
