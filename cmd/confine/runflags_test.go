package main

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestRunOptionsCommand(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "command")
	text := "echo one\necho 'two'\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args    []string
		command string
		argv    []string
	}{
		{[]string{"echo hi"}, "echo hi", nil},
		{[]string{"--", "echo hi"}, "echo hi", nil},
		{[]string{"--json", "--", "--looks-like-a-flag"}, "--looks-like-a-flag", nil},
		{[]string{"--", "ls", "-la", "a b"}, "", []string{"ls", "-la", "a b"}},
		{[]string{"--command-file", file}, text, nil},
	} {
		o, err := parseRunOptions("run", test.args)
		if err != nil {
			t.Errorf("%q: %v", test.args, err)
			continue
		}
		if o.params.Command != test.command || !slices.Equal(o.params.Argv, test.argv) {
			t.Errorf("%q: got %q, %q", test.args, o.params.Command, o.params.Argv)
		}
	}
}

func TestRunOptionsMistakes(t *testing.T) {
	dir := t.TempDir()
	nul := filepath.Join(dir, "nul")
	if err := os.WriteFile(nul, []byte("echo\x00"), 0o600); err != nil {
		t.Fatal(err)
	}
	latin, odd := filepath.Join(dir, "latin"), filepath.Join(dir, "\xff")
	if err := os.WriteFile(latin, []byte("echo \xe9"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args []string
		says string
	}{
		{nil, "no command"},
		{[]string{""}, "empty"},
		{[]string{" \n"}, "empty"},
		{[]string{"ls", "-la"}, "more than one word"},
		{[]string{"ls", "--network"}, "more than one word"},
		{[]string{"--mode", "full", "ls"}, "unknown sandbox mode"},
		{[]string{"--mode=", "ls"}, "unknown sandbox mode"},
		{[]string{"--provider", "none", "ls"}, "unknown provider"},
		{[]string{"--timeout", "11m", "ls"}, "out of range"},
		{[]string{"--timeout", "0", "ls"}, "out of range"},
		{[]string{"--timeout", "soon", "ls"}, "timeout"},
		{[]string{"--env", "NAME", "ls"}, "NAME=VALUE"},
		{[]string{"--env", "=v", "ls"}, "NAME=VALUE"},
		{[]string{"--workspace", filepath.Join(dir, "missing"), "ls"}, "not a folder"},
		{[]string{"--workspace", nul, "ls"}, "not a folder"},
		{[]string{"--command-file", nul}, "NUL"},
		{[]string{"--command-file", filepath.Join(dir, "missing")}, "opening the command file"},
		{[]string{"--command-file", nul, "ls"}, "two commands"},
		{[]string{"--no-such-flag", "ls"}, "no-such-flag"},
		{[]string{"echo \xff"}, "the command is not UTF-8"},
		{[]string{"--", "ls", "\xff"}, "the command is not UTF-8"},
		{[]string{"--command-file", latin}, "the command is not UTF-8"},
		{[]string{"--env", "A=\xff", "ls"}, `"A" is not UTF-8`},
		{[]string{"--cwd", odd, "--workspace", dir, "ls"}, "the working directory"},
	} {
		_, err := parseRunOptions("run", test.args)
		usage, ok := errors.AsType[*usageError](err)
		if !ok || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%q: got %v, want a usage error that says %q", test.args, err, test.says)
			continue
		}
		if usage.Hint() == "" {
			t.Errorf("%q: no hint", test.args)
		}
	}
}

func TestRunOptionsNameSettings(t *testing.T) {
	o, err := parseRunOptions("run", []string{"--mode", "workspace-write", "--network", "ls"})
	if err != nil {
		t.Fatal(err)
	}
	if want := map[string]any{"sandbox_mode": "workspace-write", "network_access": true}; !maps.Equal(o.named, want) {
		t.Errorf("got %v, want %v", o.named, want)
	}

	o, err = parseRunOptions("run", []string{"--network=false", "ls"})
	if err != nil {
		t.Fatal(err)
	}
	if want := map[string]any{"network_access": false}; !maps.Equal(o.named, want) {
		t.Errorf("got %v, want %v", o.named, want)
	}
}

func TestRunOptionsProviderAsPath(t *testing.T) {
	o, err := parseRunOptions("run", []string{"--provider", "/any/folder/landlock", "ls"})
	if err != nil {
		t.Fatal(err)
	}
	if o.named["provider"] != "landlock" {
		t.Errorf("the provider is %q", o.named["provider"])
	}
	if _, err := parseRunOptions("run", []string{"--provider", "/any/landlock/folder", "ls"}); err == nil {
		t.Error("a folder was taken for a provider")
	}
}

func TestRunOptionsFolders(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, test := range []struct {
		args           []string
		cwd, workspace string
	}{
		{nil, here, here},
		{[]string{"--cwd", dir}, dir, dir},
		{[]string{"--workspace", dir}, here, dir},
		{[]string{"--workspace", ".", "--cwd", "testdata"}, filepath.Join(here, "testdata"), here},
		// No message can name it; commands without a folder run in the workspace.
		{[]string{"--cwd", dir + "/\xff"}, "", dir + "/\xff"},
	} {
		o, err := parseRunOptions("run", append(test.args, "ls"))
		if err != nil {
			t.Fatal(err)
		}
		if o.params.Cwd != test.cwd || o.workspace != test.workspace {
			t.Errorf("%q: got cwd %q, workspace %q", test.args, o.params.Cwd, o.workspace)
		}
	}
}
