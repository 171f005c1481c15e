package sandboxtest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// opsArea is a folder of a scene, relative to its base, in which files of
// operations lie. The names of some begin alike: a sandbox must not compare
// paths as text.
type opsArea string

const (
	areaWork    opsArea = "work"         // a writable root
	areaSecond  opsArea = "work-2"       // another
	areaGuarded opsArea = "guarded"      // a writable root in which something is protected
	areaKept    opsArea = "guarded/kept" // the protected folder in it
	areaGranted opsArea = "granted"      // a folder that was granted for itself
	areaOutside opsArea = "work-outside" // beside the roots
	areaTops    opsArea = "tops"         // outside; see opsTop
)

var opsAreas = []opsArea{areaWork, areaSecond, areaGuarded, areaKept, areaGranted, areaOutside, areaTops}

// opsGroupSize is how many operations share the folders that they do not
// change, one in each area, so that no folder grows large.
const opsGroupSize = 100

// opsGroup is the folder of an operation in an area.
func opsGroup(base string, area opsArea, number int) string {
	return filepath.Join(base, string(area), fmt.Sprintf("g%d", number/opsGroupSize))
}

// opsInner is a folder in each of these folders that nobody changes.
const opsInner = "in"

// opsKind is what lies at a path before the operation.
type opsKind string

const (
	isAbsent opsKind = "nothing"
	isFile   opsKind = "file"
	isSealed opsKind = "read-only file" // by its mode
	isBlank  opsKind = "file without permissions"
	isFolder opsKind = "empty folder"
	isFilled opsKind = "folder with a file"
	isClosed opsKind = "read-only folder" // by its mode
	isBarred opsKind = "folder without permissions"
	isPipe   opsKind = "FIFO"
	isLink   opsKind = "link"
)

// opsTop says that a path is named by the policy itself. Each belongs to one
// operation.
type opsTop string

const (
	topNone      opsTop = ""
	topRoot      opsTop = "root"
	topProtected opsTop = "protected"
	topGranted   opsTop = "granted"
)

// opsObject is a path and what lies there before the operation.
type opsObject struct {
	path  string // physical: no links on the way
	kind  opsKind
	text  string     // of a link
	leads *opsObject // where a link ends; nil if nowhere
	other string     // a second name of the same file, or empty
	top   opsTop
}

// end is what a call works on that follows links.
func (o *opsObject) end() *opsObject {
	if o.kind == isLink && o.leads != nil {
		return o.leads
	}
	return o
}

func (o *opsObject) String() string {
	text := fmt.Sprintf("%q is a %s", o.path, o.kind)
	if o.kind == isLink {
		text += fmt.Sprintf(" (%q)", o.text)
	}
	if o.other != "" {
		text += fmt.Sprintf(", also named %q", o.other)
	}
	if o.top != topNone {
		text += fmt.Sprintf(", %s by the policy", o.top)
	}
	return text
}

// opsSource is a file at the top of a scene that operations copy from.
const opsSource = "source"

// opsContent is what every file holds.
const opsContent = "host"

// buildOps makes the folders of a scene and everything its operations start from.
func buildOps(t *testing.T, base string, operations []*operation) {
	t.Helper()
	folders := []string{base}
	for _, area := range opsAreas {
		folders = append(folders, filepath.Join(base, string(area)))
	}
	for number := 0; number < len(operations); number += opsGroupSize {
		for _, area := range opsAreas {
			group := opsGroup(base, area, operations[number].number)
			folders = append(folders, group, filepath.Join(group, opsInner))
		}
	}
	t.Cleanup(func() { unbarOps(t, base) })
	for _, dir := range folders {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(base, opsSource), []byte("gone"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, op := range operations {
		for _, o := range op.objects {
			if err := o.make(); err != nil {
				t.Fatalf("preparing %v: %v", op, err)
			}
		}
		for _, o := range slices.Backward(op.objects) { // now that they are filled, inner before outer
			if err := o.close(); err != nil {
				t.Fatalf("preparing %v: %v", op, err)
			}
		}
	}
}

// make makes the object.
func (o *opsObject) make() error {
	err := error(nil)
	switch o.kind {
	case isAbsent:
		return nil
	case isFile:
		err = os.WriteFile(o.path, []byte(opsContent), 0o644)
	case isSealed:
		err = os.WriteFile(o.path, []byte(opsContent), 0o444)
	case isBlank:
		err = os.WriteFile(o.path, []byte(opsContent), 0o000)
	case isFolder, isClosed, isBarred:
		err = os.Mkdir(o.path, 0o755)
	case isFilled:
		err = errors.Join(os.Mkdir(o.path, 0o755), os.WriteFile(filepath.Join(o.path, "file"), []byte(opsContent), 0o644))
	case isPipe:
		err = unix.Mkfifo(o.path, 0o644)
	case isLink:
		err = os.Symlink(o.text, o.path)
	}
	if err == nil && o.other != "" {
		err = os.Link(o.path, o.other)
	}
	return err
}

// close takes away the permissions of a folder.
func (o *opsObject) close() error {
	switch o.kind {
	case isClosed:
		return os.Chmod(o.path, 0o555)
	case isBarred:
		return os.Chmod(o.path, 0)
	}
	return nil
}

// unbarOps lets everything be removed. That is left to the end of all worlds:
// some file systems are slow to make files soon after others were removed.
func unbarOps(t *testing.T, base string) {
	err := filepath.WalkDir(base, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			return os.Chmod(path, 0o755) // before it is read
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// opsRecord is what a path looks like. Two fields tell apart what belongs to
// the file and what is only its metadata.
type opsRecord struct {
	file     string // type, inode, size, number of names, content
	metadata string // mode, owner, times, attributes
}

// opsRecords describes everything below a folder, by path relative to it.
func opsRecords(t *testing.T, base string) map[string]opsRecord {
	t.Helper()
	records := map[string]opsRecord{}
	if err := recordOps(base, "", records); err != nil {
		t.Fatal(err)
	}
	return records
}

func recordOps(base, path string, records map[string]opsRecord) (err error) {
	full := base + path
	var st unix.Stat_t
	if err := unix.Lstat(full, &st); err != nil {
		return err
	}
	r := opsRecord{
		file: fmt.Sprintf("type %o inode %d names %d", st.Mode&unix.S_IFMT, st.Ino, st.Nlink),
		metadata: fmt.Sprintf("mode %o owner %d:%d written %d.%09d changed %d.%09d", st.Mode, st.Uid, st.Gid,
			st.Mtim.Sec, st.Mtim.Nsec, st.Ctim.Sec, st.Ctim.Nsec),
	}
	kind := st.Mode & unix.S_IFMT
	if kind == unix.S_IFREG && st.Mode&0o400 == 0 || kind == unix.S_IFDIR && st.Mode&0o500 != 0o500 {
		// Looked into all the same, which changes the last of the times.
		r.metadata, _, _ = strings.Cut(r.metadata, " changed ")
		if err := unix.Chmod(full, 0o700); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, unix.Chmod(full, st.Mode&0o7777)) }()
	}
	switch kind {
	case unix.S_IFREG:
		data, err := os.ReadFile(full)
		if err != nil {
			return err
		}
		r.file += fmt.Sprintf(" content %q", data)
	case unix.S_IFLNK:
		text, err := os.Readlink(full)
		if err != nil {
			return err
		}
		r.file += fmt.Sprintf(" leads to %q", text)
	case unix.S_IFDIR:
		entries, err := os.ReadDir(full)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if err := recordOps(base, path+"/"+e.Name(), records); err != nil {
				return err
			}
		}
	}
	records[path] = r
	return nil
}
