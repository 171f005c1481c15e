package sandboxtest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// RunShapes runs a few facts in workspaces of every name and kind. It must be
// called like Run.
func RunShapes(t *testing.T, c Config) {
	if name := os.Getenv(worldVar); name != "" {
		runShapes(t, c, name)
		return
	}
	if c.Alone && !slow() {
		t.Skip("it differs little from a session's namespaces, and is slow (" + slowVar + ")")
	}
	stage := newTheatre(t)
	for _, w := range worldsOf(os.Geteuid(), slow()) {
		if w.bare && c.NeedsNamespaces {
			continue
		}
		t.Run(w.name(), func(t *testing.T) {
			t.Parallel()
			stage.play(t, w, withMounts)
		})
	}
}

func runShapes(t *testing.T, c Config, name string) {
	i := slices.IndexFunc(allWorlds, func(w world) bool { return w.name() == name })
	if i < 0 {
		t.Fatalf("there is no world %q", name)
	}
	w := newPlace(t, c, allWorlds[i])
	t.Run("shapes", func(t *testing.T) {
		for _, s := range shapes {
			if !slow() && !s.brief || s.mounted && !w.hasMounts() {
				continue
			}
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				s.tell(t, w)
			})
		}
	})
	t.Run("stories", func(t *testing.T) {
		for _, s := range some(shapeStories, c.Brief && !slow()) {
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				s.tell(t, w)
			})
		}
	})
	w.confined.Close()
	t.Run("nothing is left", w.checkShapes)
}

// shape is a kind of workspace.
type shape struct {
	name  string
	brief bool // run unless tests may be slow, too

	// place returns the workspace, canonical, and makes it if it must be made.
	place func(t *testing.T, w *place) string

	// alias is how the workspace is declared, if by another name.
	alias func(t *testing.T, ws string) string

	passing bool // the place is removed with the test

	// mounted: only root can make such a place, before the world begins.
	mounted bool
}

// named is a workspace of a name in the world's folder.
func named(name string) shape {
	return shape{name: "named " + name, place: func(t *testing.T, w *place) string { return filepath.Join(w.newFolder(t), name) }}
}

// lying is a workspace in a folder that commands see empty, or have one of their own of.
func lying(name string, folder func(*place) string) shape {
	return shape{name: name, passing: true, place: func(t *testing.T, w *place) string {
		dir, err := os.MkdirTemp(folder(w), "confine-suite-")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		return filepath.Join(dir, "a workspace")
	}}
}

// on is a workspace at a mount of mountShapes.
func on(name, path string) shape {
	return shape{name: name, mounted: true, place: func(t *testing.T, w *place) string { return filepath.Join(w.mounts(), path) }}
}

func (s shape) always() shape { s.brief = true; return s }

func (s shape) as(name string, alias func(t *testing.T, ws string) string) shape {
	s.name, s.alias = name, alias
	return s
}

var shapes = slices.Concat(
	[]shape{
		named("a 'b' \"c\" *?[x]{y}\n\\040 $HOME`id`").always(),
		named("\xff\xfe-not-UTF-8").always(),
		named("--ro-bind"), named("-"), named(" "), named("..."), named("a\tb"), named("a:b,c=d;e&f|g"), named("a%20b#c?d"),
		named("a\x1b[31m\x7f"), named("\u202egnirts"), named("żółw 日本 🐢"), named("e\u0301"), named("\u00e9"), named("nul\\0"),
		named(strings.Repeat("x", 255)),
		named(strings.Repeat(strings.Repeat("long", 50)+"/", 18)+"ws").as("named near PATH_MAX", nil),

		lying("below the temporary folder", func(w *place) string { return w.temp }).always(),
		lying("in shared memory", func(*place) string { return "/dev/shm" }).always(),
		lying("in the runtime folder", func(w *place) string { return w.runtime }),
		lying("below the home folder", func(w *place) string { return w.home }),

		named("ws").as("through a link", func(t *testing.T, ws string) string { return link(t, ws, ws+".link") }).always(),
		named("ws").as("through a link on the way", func(t *testing.T, ws string) string {
			return filepath.Join(link(t, filepath.Dir(ws), filepath.Dir(ws)+".link"), "ws")
		}),
		named("ws").as("through another spelling", func(t *testing.T, ws string) string {
			return filepath.Dir(ws) + "//../" + filepath.Base(filepath.Dir(ws)) + "/./ws/"
		}),
	},
	[]shape{
		on("on a temporary file system", "tmpfs/ws").always(), on("a mount point", "mount/ws"), on("a bind mount", "bind/ws"), on("on an overlay", "overlay/merged/ws"),
	},
)

func link(t *testing.T, target, path string) string {
	t.Helper()
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
	return path
}
