package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// layers lists every package, top first. A package may import only packages
// of lines below its own; packages of one line do not see each other.
var layers = [][]string{
	{"cmd/confine"},
	{"cmd/confine/config"},
	{"rpc/server"},
	{"rpc/rpctest"},
	{"rpc"},
	{"rpc/proto"},
	{"approval"},
	{"approval/rules"},
	{"sandbox/sandboxtest", "sandbox/scripttest", "sandbox/ramtest", "sandbox/opensandbox/osbtest"},
	{"sandbox/opensandbox"},
	{"sandbox/bwrap", "sandbox/seatbelt"},
	{"sandbox/landlock"},
	{"sandbox/view"},
	{"sandbox/observe"},
	{"sandbox/restrict"},
	{"sandbox/local"},
	{"sandbox/harden"},
	{"sandbox/protect"},
	{"sandbox/hide"},
	{"sandbox/mounts"},
	{"sandbox"},
}

// owners gives every third-party module the packages that may import it. A
// module is replaced, audited or upgraded in one place.
var owners = map[string][]string{
	"github.com/elastic/go-seccomp-bpf":   {"sandbox/landlock"},
	"github.com/fsnotify/fsnotify":        {"cmd/confine/config"},
	"github.com/landlock-lsm/go-landlock": {"sandbox/landlock"},
	"github.com/pelletier/go-toml/v2":     {"cmd/confine/config"},
	"github.com/sourcegraph/jsonrpc2":     {"rpc"},
	"go.lsp.dev/protocol":                 {"rpc/proto"},
	"mvdan.cc/sh":                         {"approval/rules"},

	// Package restrict makes its own calls, in place of go-landlock and a
	// library for seccomp, its neighbours name the calls of their views, and the
	// suite of providers makes the calls that must be refused.
	"golang.org/x/sys": {"sandbox/observe", "sandbox/local", "sandbox/restrict", "sandbox/view", "sandbox/landlock", "sandbox/bwrap", "sandbox/sandboxtest", "sandbox/harden"},
}

const module = "github.com/confine-dev/confine"

// sourceFile is one Go file of the repository, whatever system it is for.
type sourceFile struct {
	name    string // slash-separated, from the top of the repository
	pkg     string // its folder
	test    bool
	outer   bool // of an outer test package, x_test
	imports []string
	syntax  *ast.File
}

func TestImportArrows(t *testing.T) {
	for _, file := range sourceFiles(t) {
		if level(file.pkg) < 0 {
			t.Errorf("%s: package %s is not in the table of layers; add it with the design's consent", file.name, file.pkg)
			continue
		}
		for _, imported := range file.imports {
			own, ok := strings.CutPrefix(imported, module+"/")
			if !ok || own == file.pkg { // a package's outer tests import it
				continue
			}
			if reason := arrowFault(file, own); reason != "" {
				t.Errorf("%s imports %s: %s", file.name, own, reason)
			}
		}
	}
}

// arrowFault says why a file may not import a package of ours; empty if it may.
func arrowFault(file sourceFile, imported string) string {
	helper := strings.HasSuffix(imported, "test")
	family, _, _ := strings.Cut(file.pkg, "/")
	switch {
	case level(imported) < 0:
		return "it is not in the table of layers"
	case helper && file.test:
		return "" // suites and fakes serve the tests of every layer
	case file.outer && strings.HasPrefix(imported, family+"/"):
		return "" // such a test may need a neighbour from above, as an engine needs something to start
	case helper && !strings.HasSuffix(file.pkg, "test"):
		return "it is for tests only"
	case level(imported) <= level(file.pkg):
		return "imports point down the table of layers only"
	}
	return ""
}

func TestEachDependencyHasOneOwner(t *testing.T) {
	for _, file := range sourceFiles(t) {
		for _, imported := range file.imports {
			first, _, _ := strings.Cut(imported, "/")
			if !strings.Contains(first, ".") || strings.HasPrefix(imported, module) {
				continue // standard library or ours
			}
			allowed, known := ownersOf(imported)
			switch {
			case !known:
				t.Errorf("%s imports %s: it has no owner in this test's table", file.name, imported)
			case !slices.Contains(allowed, file.pkg):
				t.Errorf("%s imports %s: only %s may", file.name, imported, strings.Join(allowed, " and "))
			}
		}
	}
}

func TestOnlyTestsImportTesting(t *testing.T) {
	for _, file := range sourceFiles(t) {
		if slices.Contains(file.imports, "testing") && !file.test && !strings.HasSuffix(file.pkg, "test") {
			t.Errorf("%s imports testing, which would put test flags and code into the binary", file.name)
		}
	}
}

// TestArrowRules shows that the rules above can fail.
func TestArrowRules(t *testing.T) {
	for _, test := range []struct {
		file     sourceFile
		imported string
		allowed  bool
	}{
		{sourceFile{pkg: "rpc/server"}, "approval", true},
		{sourceFile{pkg: "cmd/confine"}, "sandbox", true},
		{sourceFile{pkg: "sandbox/landlock"}, "sandbox/local", true},
		{sourceFile{pkg: "sandbox/sandboxtest"}, "sandbox", true},
		{sourceFile{pkg: "rpc", test: true}, "rpc/rpctest", true},
		{sourceFile{pkg: "sandbox/local", test: true}, "sandbox/sandboxtest", true},
		{sourceFile{pkg: "sandbox/local", test: true, outer: true}, "sandbox/landlock", true},

		{sourceFile{pkg: "approval"}, "rpc", false},
		{sourceFile{pkg: "approval", test: true}, "rpc/server", false},
		{sourceFile{pkg: "approval", test: true, outer: true}, "rpc", false},
		{sourceFile{pkg: "sandbox", test: true, outer: true}, "approval", false},
		{sourceFile{pkg: "sandbox"}, "approval", false},
		{sourceFile{pkg: "sandbox/bwrap"}, "sandbox/seatbelt", false},
		{sourceFile{pkg: "sandbox/local"}, "sandbox/landlock", false},
		{sourceFile{pkg: "rpc/server"}, "rpc/rpctest", false},
		{sourceFile{pkg: "rpc/server"}, "sandbox/sandboxtest", false},
		{sourceFile{pkg: "cmd/confine"}, "util", false},
	} {
		fault := arrowFault(test.file, test.imported)
		if (fault == "") != test.allowed {
			t.Errorf("%+v importing %s: got fault %q, want allowed %v", test.file, test.imported, fault, test.allowed)
		}
	}
}

// level is the line of a package in layers, or -1.
func level(pkg string) int {
	return slices.IndexFunc(layers, func(line []string) bool { return slices.Contains(line, pkg) })
}

func ownersOf(imported string) (pkgs []string, known bool) {
	for mod, pkgs := range owners {
		if imported == mod || strings.HasPrefix(imported, mod+"/") {
			return pkgs, true
		}
	}
	return nil, false
}

// sourceFiles parses every Go file of the repository.
func sourceFiles(t *testing.T) []sourceFile {
	t.Helper()
	top := repositoryTop(t)
	var files []sourceFile
	err := filepath.WalkDir(top, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := entry.Name()
		if entry.IsDir() {
			if name != top && (base == "node_modules" || base == "testdata" || strings.ContainsAny(base[:1], "._")) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(base, ".go") {
			return nil
		}
		file, err := parseSource(top, name)
		files = append(files, file)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 20 {
		t.Fatalf("found only %d Go files below %s", len(files), top)
	}
	return files
}

func parseSource(top, name string) (sourceFile, error) {
	rel, err := filepath.Rel(top, name)
	if err != nil {
		return sourceFile{}, err
	}
	file := sourceFile{name: filepath.ToSlash(rel), test: strings.HasSuffix(name, "_test.go")}
	file.pkg = path.Dir(file.name)
	file.syntax, err = parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly|parser.ParseComments)
	if err != nil {
		return sourceFile{}, err
	}
	file.outer = file.test && strings.HasSuffix(file.syntax.Name.Name, "_test")
	for _, spec := range file.syntax.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return sourceFile{}, err
		}
		file.imports = append(file.imports, imported)
	}
	return file, nil
}

// repositoryTop is the folder with go.mod above the test's folder.
func repositoryTop(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no go.mod above the test's folder")
		}
		dir = filepath.Dir(dir)
	}
}
