package main

import (
	"strings"
	"testing"
)

func TestClean(t *testing.T) {
	ann := identity{homes: []string{"/home/ann", "/real/home/ann", ""}, users: []string{"ann", "root", ""}, hosts: []string{"box", "box.example.org"}}
	jwt := "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
	for text, want := range map[string]string{
		"nothing to hide":                               "nothing to hide",
		"/home/ann/src /home/anna /real/home/ann":       "<home>/src /home/anna <home>",
		"file:///home/ann/a%20b":                        "file://<home>/a%20b",
		"ann said: planner, root, ann_, ann@box":        "<user> said: planner, root, ann_, <user>@<host>",
		"ann ann ann":                                   "<user> <user> <user>",
		"box.example.org and boxes":                     "<host> and boxes",
		"it is s3cret+value/x here":                     "it is <secret> here",
		"?q=s3cret%2Bvalue%2Fx&r=1":                     "?q=<secret>&r=1",
		"https://ann:p@ss@host/x":                       "https://<secret>@host/x",
		"https://host/x?page=2&access_token=abc&z=1":    "https://host/x?page=2&access_token=<secret>&z=1",
		`level=INFO password="two words" next=1`:        `level=INFO password=<secret> next=1`,
		`msg="token=\"a b\" and more"`:                  `msg="token=<secret> and more"`,
		`{"apiKey": "abc", "other": 1}`:                 `{"apiKey": <secret>, "other": 1}`,
		"Authorization: Basic YW5u OjE= rest":           "Authorization: <secret>",
		"curl -H 'Cookie: a=1; b=2'":                    "curl -H 'Cookie: <secret>",
		"mysql --password hunter2 --host db":            "mysql --password <secret> --host db",
		"gh --with-token 'a b' x":                       "gh --with-token <secret> x",
		"curl -u me:pass1 -s x --user=me:pass2":         "curl -u me:<secret> -s x --user=me:<secret>",
		`curl --password \"two words\" x`:               `curl --password <secret> x`,
		`argv ["curl","--password","pw1" ]`:             `argv ["curl","--password",<secret> ]`,
		`argv [\"curl\",\"-u\",\"me:pw1\",\"x\"]`:       `argv [\"curl\",\"-u\",\"me:<secret>\",\"x\"]`,
		"curl -sSu me:pass1 x":                          "curl -sSu me:<secret> x",
		"sshpass -p pw1 ssh -p 22 h":                    "sshpass -p <secret> ssh -p 22 h",
		"docker login -u me -p pw1 h; docker run -p 80": "docker login -u me -p <secret> h; docker run -p 80",
		"redis-cli -h x -a 'p w' get k":                 "redis-cli -h x -a <secret> get k",
		"mysql -ume -ppw1 db; mysql -p db":              "mysql -ume -p<secret> db; mysql -p db",
		"openssl rsa -passin pass:pw1 -in k":            "openssl rsa -passin pass:<secret> -in k",
		`MYSQL_PWD=pw1 x {"DB_PASS":"pw2" }`:            `MYSQL_PWD=<secret> x {"DB_PASS":<secret> }`,
		"--- PASS: TestX, pass: 3, bypass:x":            "--- PASS: TestX, pass: 3, bypass:x",
		`sent {\"token\":\"a1\",\"n\":1}`:               `sent {\"token\":<secret>,\"n\":1}`,
		"bearer abc.def, then":                          "bearer <secret> then",
		"ghp_0123456789abcdefghijABCDEFGHIJ0123":        "<secret>",
		"sk-ant-0123456789abcdef and " + jwt + "!":      "<secret> and <secret>!",
		"https://hooks.slack.com/services/T0/B0/xyz":    "<secret>", // nobody shall know even which hook it is
		"dXNlcjpwYXNzd29yZHVzZXI6cGFzc3dvcmR1c2VyOnBh":  "<secret>",
		"sandbox_api_key: it must be a text":            "sandbox_api_key: <secret> must be a text", // rather too much
		"DefaultEndpointsProtocol=https;AccountKey=a/b": "DefaultEndpointsProtocol=https;AccountKey=<secret>",
	} {
		r := newRedactor([]string{"s3cret+value/x", ""}, ann)
		got := r.clean(text)
		if got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
		before, sum := 0, 0
		for placeholder, n := range r.counts {
			before, sum = before+n, sum+strings.Count(want, placeholder)
		}
		if before < sum || (before > 0) != (sum > 0) { // two things may have become one
			t.Errorf("%q: counted %v", text, r.counts)
		}
		if again := r.clean(got); again != got {
			t.Errorf("%q became %q the second time", got, again)
		}
	}
}

// TestCleanCommand: the words of a command are looked at together.
func TestCleanCommand(t *testing.T) {
	rule := map[string]any{"command": []any{"curl", "-u", "me:pw1"}, "decision": "deny"}
	newRedactor(nil, identity{}).cleanAll(map[string]any{"value": []any{rule}})
	if rule["command"] != "curl -u me:<secret>" || rule["decision"] != "deny" {
		t.Errorf("got %v", rule)
	}
}

// TestCleanWithOddNames: whoever is called like a placeholder, or has a secret of an
// ordinary word, gets a report as well.
func TestCleanWithOddNames(t *testing.T) {
	r := newRedactor([]string{"secret", "line one\nline two of it"}, identity{users: []string{"user", "home"}, homes: []string{"/", "relative"}, hosts: []string{"localhost"}})
	got := r.clean("the user has a secret at home: line two of it")
	if strings.Contains(got, "user has") || strings.Contains(got, "a secret ") || strings.Contains(got, "two of it") {
		t.Errorf("got %q", got)
	}
	if got := r.clean("/etc/hosts relative/x localhost"); got != "/etc/hosts relative/x localhost" {
		t.Errorf("got %q", got)
	}
}
