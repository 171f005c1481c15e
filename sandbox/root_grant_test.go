package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// grantTree is a home folder with things that can and cannot be granted.
func grantTree(t *testing.T) (at func(string) string, forbidden Forbidden) {
	t.Helper()
	base := tree(t, "home/u/ws", "home/u/.ssh", "home/u/.config/confine", "out/folder")
	at = func(path string) string { return filepath.Join(base, path) }
	for _, file := range []string{"home/u/.ssh/authorized_keys", "home/u/.config/confine/settings", "home/u/bin", "out/file"} {
		if err := os.WriteFile(at(file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return at, Forbidden{Home: at("home/u"), Own: []string{at("home/u/.config/confine"), at("home/u/bin")}}
}

func TestDeclareGrant(t *testing.T) {
	at, forbidden := grantTree(t)
	symlink(t, at("home/u/.ssh"), at("home/u/ws/link"))
	symlink(t, at("home/u/.ssh/new"), at("home/u/ws/dangling"))
	symlink(t, "../ws/./loop", at("home/u/ws/loop"))
	symlink(t, "../../../out", at("home/u/ws/up"))
	for _, test := range []struct {
		path    string
		kind    GrantKind
		opens   string // empty if refused
		missing string
		says    string
	}{
		{"out/file", GrantWrite, "out/file", "", ""},
		{"out/file", GrantRead, "out/file", "", ""},
		{"out/folder", GrantWrite, "out/folder", "", ""},
		{"out/folder/", GrantWrite, "out/folder", "", ""},
		{"out//folder/../file", GrantWrite, "out/file", "", ""},
		{"out/folder/new", GrantWrite, "out/folder", "new", ""},
		{"out/folder/a/./b", GrantWrite, "out/folder", "a/b", ""},
		{"home/u/ws/link/authorized_keys", GrantWrite, "home/u/.ssh/authorized_keys", "", ""},
		{"home/u/ws/dangling", GrantWrite, "home/u/.ssh", "new", ""},
		{"home/u/ws/up/file", GrantWrite, "out/file", "", ""},
		{"home/u/.ssh", GrantWrite, "home/u/.ssh", "", ""},

		{"home/u/ws/loop", GrantWrite, "", "", "too many links"},
		{"out/file/", GrantWrite, "", "", "not a folder"},
		{"out/file/x", GrantWrite, "", "", "not a folder"},
		{"out/new/../folder", GrantWrite, "", "", "does not exist"},
		{"out/new", GrantRead, "", "", "does not exist"},
		{"home/u", GrantWrite, "", "", "home folder"},
		{"home/u", GrantRead, "", "", "home folder"},
		{"home", GrantWrite, "", "", "home folder"},
		{"home/u/new", GrantWrite, "", "", "home folder"},
		{"home/new", GrantWrite, "", "", "home folder"},
		{"home/u/.config", GrantWrite, "", "", "own files"},
		{"home/u/.config/confine", GrantRead, "", "", "own files"},
		{"home/u/.config/confine/settings", GrantWrite, "", "", "own files"},
		{"home/u/.config/confine/settings", GrantRead, "", "", "own files"},
		{"home/u/.config/confine/new", GrantWrite, "", "", "own files"},
		{"home/u/bin", GrantWrite, "", "", "own files"},
	} {
		grant, err := DeclareGrant(at("")+"/"+test.path, forbidden, test.kind) // not joined, which would clean it
		switch {
		case test.opens == "" && err == nil:
			t.Errorf("%s %s opens %q", test.kind, test.path, grant.Path)
			grant.Close()
		case test.opens == "":
			if !strings.Contains(err.Error(), test.says) {
				t.Errorf("%s: %v, want it to say %q", test.path, err, test.says)
			}
		case err != nil:
			t.Errorf("%s %s: %v", test.kind, test.path, err)
		default:
			info, statErr := os.Stat(at(test.opens))
			if grant.Path != at(test.opens) || grant.Missing != test.missing || statErr != nil || grant.File == info.IsDir() {
				t.Errorf("%s opens %+v, %q missing", test.path, grant.Root, grant.Missing)
			}
			grant.Close()
		}
	}
}

func TestDeclareGrantRefusesPlaces(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("these paths are Linux's")
	}
	runtimeDir := tree(t, "sub")
	t.Setenv("XDG_RUNTIME_DIR", runtimeDir)
	for path, says := range map[string]string{
		"/": "root of the file system", "/..": "root of the file system", "/new-in-the-root": "root of the file system",
		"/proc/self/status": "/proc of their own", "/proc/new": "/proc of their own", "/sys": "/sys of their own", "/dev": "/dev of their own",
		"/tmp": "sockets", "/run": "sockets", runtimeDir: "sockets", runtimeDir + "/sub": "sockets", runtimeDir + "/new": "sockets",
		"relative": "absolute", "": "absolute", "/a\xff": "UTF-8", "/a\uFFFD": "UTF-8", "/a\x00b": "NUL", "/" + strings.Repeat("a", 4096): "longer than 4096",
		"/dev/null": "neither a file nor a folder", "/proc/self/root": "root of the file system", "/dev/shm": "/dev of their own",
	} {
		grant, err := DeclareGrant(path, Forbidden{}, GrantWrite)
		if err == nil {
			grant.Close()
		}
		var refusal *RootError
		if !errors.As(err, &refusal) || !strings.Contains(err.Error(), says) {
			t.Errorf("%.40q: %v, want a RootError with %q", path, err, says)
		}
	}
}

// TestReopen: what was pinned is the same or nothing.
func TestReopen(t *testing.T) {
	at, forbidden := grantTree(t)
	grant, err := DeclareGrant(at("out/file"), forbidden, GrantWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer grant.Close()
	again, err := grant.Reopen()
	if err != nil || again.Path != grant.Path {
		t.Fatalf("Reopen = %+v, %v", again, err)
	}
	again.Close()
	swap := func(name string, put func(path string)) {
		if err := os.Rename(at("out/file"), at("out/aside")); err != nil {
			t.Fatal(err)
		}
		put(at("out/file"))
		if again, err := grant.Reopen(); err == nil {
			again.Close()
			t.Errorf("%s: it was opened again", name)
		}
		_ = os.RemoveAll(at("out/file"))
		if err := os.Rename(at("out/aside"), at("out/file")); err != nil {
			t.Fatal(err)
		}
	}
	swap("gone", func(string) {})
	swap("another file", func(path string) { _ = os.WriteFile(path, nil, 0o600) })
	swap("a folder", func(path string) { _ = os.Mkdir(path, 0o700) })
	swap("a link", func(path string) { _ = os.Symlink(at("home/u/.ssh/authorized_keys"), path) })
	swap("a link to itself", func(path string) { _ = os.Symlink(at("out/aside"), path) })
}

func TestPerils(t *testing.T) {
	t.Setenv("TMPDIR", "/tmp") // elsewhere a folder may be the system\'s
	base := tree(t, "p/.git/hooks", "p/sub", "go/src", "home/.config/systemd/user", "home/.local/share", "plain")
	at := func(path string) string { return filepath.Join(base, path) }
	for path, want := range map[string][]Peril{
		at("home/.bashrc"):              {PerilRuns},
		at("home/.ssh/authorized_keys"): {PerilRuns, PerilSecrets},
		at("home/.ssh"):                 {PerilRuns, PerilSecrets},
		at("home/.config"):              {PerilRuns, PerilSecrets},
		at("home/.config/systemd/user"): {PerilRuns},
		at("home/.local"):               {PerilRuns, PerilSecrets},
		at("p/.git/config"):             {PerilRuns},
		at("p/.git/hooks"):              {PerilRuns},
		at("p/.git"):                    {PerilRuns},
		at("p"):                         {PerilRuns},
		at("p/sub"):                     nil,
		at("go"):                        nil,
		at("plain"):                     nil,
		at("plain/file"):                nil,
		"/etc/hosts":                    {PerilSystem},
		"/var/tmp/build":                nil,
		"/var":                          {PerilSystem},
		"/etc/shadow":                   {PerilSystem, PerilSecrets},
		"/usr":                          {PerilSystem},
		"/home/u/.ENV":                  {PerilSecrets},
	} {
		info, err := os.Stat(path)
		r := &Root{Path: path, File: err != nil || !info.IsDir()}
		if got := Perils(r, GrantWrite); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", strings.TrimPrefix(path, base), got, want)
		}
		reading := slices.DeleteFunc(slices.Clone(want), func(p Peril) bool { return p == PerilRuns || p == PerilSystem })
		if got := Perils(r, GrantRead); !slices.Equal(got, reading) {
			t.Errorf("reading %s: %q, want %q", strings.TrimPrefix(path, base), got, reading)
		}
	}
}

// FuzzSettle: however a path is spelled, what it leads to is found as the
// system finds it.
func FuzzSettle(f *testing.F) {
	for _, path := range []string{"a/b", "a/../b", "link/x", "up/a", "a/./new/c", "dangling/x", "loop", "a//b/", "a/file/x", "a/file/"} {
		f.Add(path)
	}
	base, err := filepath.EvalSymlinks(f.TempDir())
	if err != nil {
		f.Fatal(err)
	}
	for _, err := range []error{
		os.MkdirAll(filepath.Join(base, "a", "b"), 0o700), os.WriteFile(filepath.Join(base, "a", "file"), nil, 0o600),
		os.Symlink("a", filepath.Join(base, "link")), os.Symlink("../", filepath.Join(base, "a", "up")),
		os.Symlink("a/none", filepath.Join(base, "dangling")), os.Symlink("loop", filepath.Join(base, "loop")),
	} {
		if err != nil {
			f.Skip(err)
		}
	}
	f.Fuzz(func(t *testing.T, path string) {
		if strings.ContainsRune(path, 0) || len(path) > 1000 {
			t.Skip()
		}
		// Not Join, which would clean it.
		real, missing, err := settle(base + "/" + path)
		want, wantErr := filepath.EvalSymlinks(base + "/" + path)
		if wantErr == nil && (err != nil || real != want || missing != "") {
			t.Errorf("%q: %q, %q, %v; want %q", path, real, missing, err, want)
		}
		if err != nil {
			return
		}
		if missing == "" && wantErr != nil {
			t.Errorf("%q exists as %q, but: %v", path, real, wantErr)
		}
		if again, err := filepath.EvalSymlinks(real); err != nil || again != real {
			t.Errorf("%q: %q is not canonical: %q, %v", path, real, again, err)
		}
		if missing != "" {
			if _, err := os.Lstat(filepath.Join(real, strings.Split(missing, "/")[0])); err == nil {
				t.Errorf("%q: %q exists in %q", path, missing, real)
			}
		}
	})
}
