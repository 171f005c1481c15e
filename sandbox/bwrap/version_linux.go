package bwrap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"time"
)

// version is a release of bubblewrap: major, minor, patch.
type version [3]int

func (v version) String() string { return fmt.Sprintf("%d.%d.%d", v[0], v[1], v[2]) }

func (v version) before(o version) bool {
	for i := range v {
		if v[i] != o[i] {
			return v[i] < o[i]
		}
	}
	return false
}

// What brought the options that confine uses. Older ones: --unshare-all,
// --die-with-parent and --new-session came with 0.1.8, --as-pid-1, --cap-add
// and --cap-drop with 0.2.0, --json-status-fd with 0.3.2.
var (
	minimum   = version{0, 5, 0} // --perms
	sizeSince = version{0, 7, 0} // --size; before, file systems in memory have the kernel's limit, half of the memory
)

// versionTime bounds how long bubblewrap may take to say its version.
const versionTime = 5 * time.Second

var versionPattern = regexp.MustCompile(`^bubblewrap (\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?`)

// ask runs a bubblewrap to learn its version. It asks twice at most: whoever looks
// for orphans among this process's children may take it for one.
func ask(p *program) (version, error) {
	said, err := run(p)
	if err != nil {
		said, err = run(p)
	}
	if err != nil {
		return version{}, &fault{reason: fmt.Sprintf("%q --version failed: %v", p.path, err)}
	}
	v, ok := parseVersion(said)
	if !ok {
		return version{}, &fault{fmt.Sprintf("%q --version does not answer as bubblewrap does", p.path), []string{"set bwrap_path to a bubblewrap"}}
	}
	if v.before(minimum) {
		return v, &fault{fmt.Sprintf("bubblewrap %v at %q is too old: confine needs %v or newer", v, p.path, minimum),
			[]string{"update bubblewrap, or set bwrap_path to a newer one"}}
	}
	return v, nil
}

func run(p *program) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), versionTime)
	defer cancel()
	// The descriptor has a fixed number in the child, where nothing moves it.
	cmd := exec.CommandContext(ctx, "/proc/self/fd/3")
	cmd.Args = []string{"bwrap", "--version"}
	cmd.Env, cmd.Dir = []string{}, "/"
	cmd.ExtraFiles = []*os.File{p.file}
	cmd.WaitDelay = time.Second
	var said limited
	cmd.Stdout = &said
	err := cmd.Run()
	if ctx.Err() != nil {
		err = fmt.Errorf("it did not end within %v; this machine is too busy, or it is not bubblewrap", versionTime)
	}
	return said.String(), err
}

func parseVersion(text string) (v version, ok bool) {
	parts := versionPattern.FindStringSubmatch(text)
	if parts == nil {
		return v, false
	}
	for i := range v {
		v[i], _ = strconv.Atoi(parts[i+1]) // digits, or empty for 0
	}
	return v, true
}

// limited keeps the little that a version takes.
type limited struct{ bytes.Buffer }

func (l *limited) Write(data []byte) (int, error) {
	if l.Len()+len(data) > 4096 {
		return 0, errors.New("too long")
	}
	return l.Buffer.Write(data)
}
