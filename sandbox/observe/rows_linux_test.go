package observe

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// row is some actions and what must be noted of them. W and O stand for folders
// inside and outside the workspace that only this row uses; each has the files of
// furnish. A denial is written "op path" or, where the levels differ, "op path
// VIEW LANDLOCK", with "-" for no denial; otherwise the errno is the one that the
// last action got.
type row struct {
	name string
	do   []string
	want []string
}

// furnish fills a folder: file, full (a folder with something in it), empty, link
// (to file), dangling, fifo.
func furnish(t *testing.T, dir string) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.MkdirAll(filepath.Join(dir, "full"), 0o755))
	must(os.Mkdir(filepath.Join(dir, "empty"), 0o755))
	must(os.WriteFile(filepath.Join(dir, "file"), []byte("file"), 0o644))
	must(os.WriteFile(filepath.Join(dir, "full/inner"), []byte("inner"), 0o644))
	must(os.Symlink("file", filepath.Join(dir, "link")))
	must(os.Symlink("nowhere", filepath.Join(dir, "dangling")))
	must(unix.Mkfifo(filepath.Join(dir, "fifo"), 0o644))
}

var rows = []row{
	{"create", []string{"creat O/new"}, []string{"create O/new"}},
	{"create exclusively", []string{"excl O/new"}, []string{"create O/new"}},
	{"create what exists", []string{"excl O/file"}, nil},
	{"write over", []string{"creat O/file"}, []string{"write O/file"}},
	{"write", []string{"write O/file"}, []string{"write O/file"}},
	{"update", []string{"update O/file"}, []string{"write O/file"}},
	{"append", []string{"append O/file"}, []string{"write O/file"}},
	{"truncate while reading", []string{"readtrunc O/file"}, []string{"write O/file"}},
	{"read with O_CREAT", []string{"readcreat O/file"}, nil},
	{"create with O_RDONLY", []string{"readcreat O/new"}, []string{"create O/new"}},
	{"read", []string{"read O/file"}, nil},
	{"hold a path", []string{"path O/file"}, nil},
	{"write what is missing", []string{"write O/new"}, nil},
	{"write a folder", []string{"write O/empty"}, nil},
	{"create below a file", []string{"creat O/file/new"}, nil},
	{"create below nothing", []string{"creat O/none/new"}, nil},
	{"create with a slash", []string{"creat O/new/"}, nil},
	{"write with a slash", []string{"write O/file/"}, nil},
	{"through a link", []string{"write O/link"}, []string{"write O/file"}},
	{"through a link that leads nowhere", []string{"creat O/dangling"}, []string{"create O/nowhere"}},
	{"not through a link", []string{"nofollow O/link"}, nil},
	{"an unnamed file", []string{"tmpfile O/empty"}, []string{"create O/empty"}},
	{"a FIFO", []string{"fifo O/fifo"}, []string{"write O/fifo EACCES EACCES"}},
	{"make a folder", []string{"mkdir O/new"}, []string{"create O/new"}},
	{"make a folder with a slash", []string{"mkdir O/new/"}, []string{"create O/new"}},
	{"make a folder that exists", []string{"mkdir O/full"}, nil},
	{"make a link", []string{"symlink O/new"}, []string{"create O/new"}},
	{"make a link that exists", []string{"symlink O/link"}, nil},
	{"bind a socket", []string{"bind O/new"}, []string{"create O/new"}},
	{"bind a socket where something is", []string{"bind O/file"}, nil},
	{"bind a socket in the workspace", []string{"bind W/new"}, nil},
	{"bind an abstract socket", []string{"bind @confine-test-bound"}, nil},
	{"make a FIFO", []string{"mkfifo O/new"}, []string{"create O/new"}},
	{"link", []string{"link O/file O/new"}, []string{"create O/new"}},
	{"link a folder", []string{"link O/full O/new"}, nil},
	{"link out", []string{"link W/file O/new"}, []string{"create O/new"}},
	{"link in", []string{"link O/file W/new"}, []string{"link O/file"}},
	{"remove", []string{"unlink O/file"}, []string{"remove O/file"}},
	{"remove a link", []string{"unlink O/link"}, []string{"remove O/link"}},
	{"remove what is missing", []string{"unlink O/new"}, nil},
	{"remove a folder as a file", []string{"unlink O/empty"}, nil},
	{"remove a folder", []string{"rmdir O/empty"}, []string{"remove O/empty"}},
	{"remove a full folder", []string{"rmdir O/full"}, nil},
	{"remove a file as a folder", []string{"rmdir O/file"}, nil},
	{"rename", []string{"rename O/file O/new"}, []string{"rename O/new"}},
	{"rename over", []string{"rename O/file O/full/inner"}, []string{"rename O/full/inner EROFS EACCES", "rename O/file - EACCES"}},
	{"rename what is missing", []string{"rename O/none O/new"}, nil},
	{"rename a file over a folder", []string{"rename O/file O/empty"}, nil},
	{"rename a folder over a full one", []string{"rename O/empty O/full"}, nil},
	{"rename a folder into itself", []string{"rename O/full O/full/new"}, nil},
	{"rename but not over", []string{"noreplace O/file O/fifo"}, nil},
	{"rename out", []string{"rename W/file O/new"}, []string{"rename O/new"}},
	{"rename in", []string{"rename O/file W/new"}, []string{"rename O/file"}},
	{"exchange a link and a slash", []string{"exchange W/away/ O/fifo"}, nil},
	{"exchange", []string{"exchange O/file O/fifo"}, []string{"rename O/fifo"}},
	{"truncate", []string{"truncate O/file"}, []string{"write O/file"}},
	{"truncate a folder", []string{"truncate O/empty"}, nil},
	{"change a mode", []string{"chmod O/file"}, []string{"chmod O/file EROFS -"}},
	{"change a mode through a link", []string{"chmod O/link"}, []string{"chmod O/file EROFS -"}},
	{"change a mode by the newest call", []string{"chmod2 O/file"}, []string{"chmod O/file EROFS -"}},
	{"change a mode of nothing", []string{"chmod O/new"}, nil},
	{"change an owner", []string{"chown O/file"}, []string{"chown O/file EROFS -"}},
	{"change a link's owner", []string{"lchown O/link"}, []string{"chown O/link EROFS -"}},
	{"change the owner of what a link leads to, by a slash", []string{"lchown W/away/"}, []string{"chown O EROFS -"}},
	{"change no owner", []string{"chownnone O/file"}, nil},
	{"change times", []string{"utime O/file"}, []string{"utime O/file EROFS -"}},
	{"change times to now", []string{"now O/file"}, []string{"utime O/file EROFS -"}},
	{"change an attribute", []string{"setxattr O/file"}, []string{"xattr O/file EROFS -"}},
	{"change an attribute of a link", []string{"lsetxattr O/link"}, nil},
	{"by a link out of the workspace", []string{"creat W/away/new"}, []string{"create O/new"}},
	{"by a link to a file outside", []string{"creat W/awayfile"}, []string{"write O/file"}},
	{"by dots", []string{"creat W/full/../../OUT/new"}, []string{"create O/new"}},
	{"by more dots than folders", []string{"creat /../../..O/new"}, []string{"create O/new"}},
	{"relative", []string{"chdir O/full", "creat ../new", "creat new"}, []string{"create O/new", "create O/full/new"}},
	{"by a descriptor of a folder", []string{"hold 100 O", "creatat 100 full/new"}, []string{"create O/full/new"}},
	{"by descriptors of folders", []string{"hold 100 O", "hold 101 O/full", "renameat 100 file 101 inner"},
		[]string{"rename O/full/inner EROFS EACCES", "rename O/file - EACCES"}},
	{"by a descriptor of a file", []string{"hold 100 O/file", "creatat 100 new"}, nil},
	{"by no descriptor", []string{"creatat 999 new"}, nil},
	{"by a descriptor in /proc", []string{"hold 100 O/file", "write /proc/self/fd/100"}, []string{"write O/file"}},
	{"by a descriptor of the thread", []string{"hold 100 O/file", "write /proc/thread-self/fd/100"}, []string{"write O/file"}},
	{"by a descriptor of a folder in /proc", []string{"hold 100 O", "creat /proc/self/fd/100/new"}, []string{"create O/new"}},
	{"by a descriptor in /dev", []string{"hold 100 O/file", "write /dev/fd/100"}, []string{"write O/file"}},
	{"by the root in /proc", []string{"creat /proc/self/rootO/new"}, []string{"create O/new"}},
	{"by the folder in /proc", []string{"chdir O", "creat /proc/self/cwd/new"}, []string{"create O/new"}},
	{"times by a descriptor", []string{"hold 100 O/file", "utimefd 100"}, nil},
	{"no memory", []string{"nothing"}, nil},
	{"no text", []string{"empty"}, nil},
	{"a name that is too long", []string{"creat O/" + strings.Repeat("x", 300)}, nil},
	{"a path that is too long", []string{"creat O/" + strings.Repeat("x/", 2500)}, nil},

	{"inside: create", []string{"creat W/new", "excl W/new2", "write W/new", "append W/full/inner", "creat W/link", "creat W/dangling"}, nil},
	{"inside: change names", []string{"mkdir W/a", "symlink W/b", "mkfifo W/c", "link W/file W/d", "rename W/d W/a/d", "unlink W/b", "rmdir W/empty", "tmpfile W"}, nil},
	{"inside: change the rest", []string{"truncate W/file", "chmod W/file", "utime W/file", "now W/link", "setxattr W/file", "chown W/file", "fifo W/fifo"}, nil},
	{"inside: relative", []string{"chdir W", "creat a", "creat full/b", "creat ./c", "creat full/../d", "mkdir e/", "rmdir e"}, nil},
	{"the null device", []string{"write /dev/null", "creat /dev/null"}, nil},
}

func TestRows(t *testing.T) {
	levels(t, func(t *testing.T, s *scene) {
		var actions []string
		begin := make([]int, len(rows)+1)
		expand := make([]*strings.Replacer, len(rows))
		for i, r := range rows {
			in, out := filepath.Join(s.work, fmt.Sprint(i)), filepath.Join(s.out, fmt.Sprint(i))
			furnish(t, in)
			furnish(t, out)
			if os.Symlink(out, filepath.Join(in, "away")) != nil || os.Symlink(filepath.Join(out, "file"), filepath.Join(in, "awayfile")) != nil {
				t.Fatal("no links")
			}
			expand[i] = strings.NewReplacer("W/", in+"/", "O/", out+"/", " W", " "+in, " O", " "+out, "OUT", "../out/"+fmt.Sprint(i))
			for _, action := range r.do {
				actions = append(actions, expand[i].Replace(action))
			}
			begin[i+1] = len(actions)
		}
		answers, observed := s.act(actions...)
		got := map[string]bool{}
		for _, line := range lines(observed.Denials) {
			got[line] = true
		}
		for i, r := range rows {
			t.Run(r.name, func(t *testing.T) {
				mine := answers[begin[i]:begin[i+1]]
				t.Logf("%v got %v", r.do, mine)
				for _, want := range r.want {
					line := wanted(want, s.view, mine)
					if line == "" {
						continue
					}
					if line = expand[i].Replace(line); !got[line] {
						t.Errorf("not noted: %s", line)
					}
					delete(got, line)
				}
				for line := range got {
					if strings.Contains(line, filepath.Join(s.out, fmt.Sprint(i))+"/") || strings.Contains(line, filepath.Join(s.work, fmt.Sprint(i))+"/") ||
						slices.Contains(strings.Fields(line), filepath.Join(s.out, fmt.Sprint(i))) {
						t.Errorf("noted: %s", line)
						delete(got, line)
					}
				}
			})
		}
		for line := range got {
			t.Errorf("noted, of no row: %s", line)
		}
		if s.view && observed.State != "full" {
			t.Errorf("state %s: %s", observed.State, observed.Reason)
		}
	})
}

// wanted is a denial with the errno of a level; empty for none.
func wanted(want string, view bool, answers []string) string {
	fields := strings.Fields(want)
	errno := answers[len(answers)-1]
	if len(fields) == 4 {
		if errno = fields[3]; view {
			errno = fields[2]
		}
	}
	if errno == "-" {
		return ""
	}
	return fields[0] + " " + fields[1] + " " + errno
}
