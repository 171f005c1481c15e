package sandboxtest

import (
	"slices"

	"golang.org/x/sys/unix"
)

// opsCall is one kind of operation: what it takes, what it would change and how
// it is done.
type opsCall struct {
	name   string
	weight int       // how often it is drawn
	flags  []int     // one is drawn; nil: 0
	acts   bool      // what is opened is used afterwards, in one of opsActions
	kinds  []opsKind // of the first file
	second []opsKind // of the second; nil: there is none
	forms  []opsForm // of the first file
	steps  func(*operation) []opsStep
	try    func(*attempt) error
}

// opsStep is one part of an operation that can fail, and what it changes if it
// does not. The steps before it are preparation.
type opsStep struct {
	name    string
	changes []opsChange
}

// opsChange is a change to one file.
type opsChange struct {
	op       string     // as denials name it
	object   *opsObject // what is changed
	inside   bool       // a new name in this folder, which the operation does not choose
	entry    bool       // the name itself is made, removed or given to another file
	metadata bool       // nothing but mode, owner, times and attributes
}

// opsAction is what an operation does with what it opened.
type opsAction string

const (
	actNothing  opsAction = ""
	actWrite    opsAction = "write"
	actTruncate opsAction = "ftruncate"
	actMap      opsAction = "mmap"
	actCopy     opsAction = "copy_file_range"
)

var opsActions = []opsAction{actNothing, actNothing, actWrite, actWrite, actTruncate, actMap, actCopy}

// Forms for calls that take a descriptor beside a path, for ones that do not,
// and for ones that change a name, which a descriptor has not.
var (
	namingForms  = []opsForm{formPath, formPath, formEntered, formBelowRead, formBelowPath, formBelowProc}
	pathForms    = []opsForm{formPath, formPath, formEntered, formBelowProc, formReopenRead, formReopenPath}
	openForms    = slices.Concat(namingForms, []opsForm{formReopenRead, formReopenPath})
	holdingForms = slices.Concat(openForms, []opsForm{formHeld, formHeld, formHeldPath})
	xattrForms   = slices.Concat(pathForms, []opsForm{formHeld, formHeld})
)

// Kinds of files for calls that need one, that make one, that remove one.
var (
	mostlyFiles   = []opsKind{isFile, isFile, isFile, isFile, isFile, isFile, isSealed, isBlank, isFolder, isPipe, isAbsent}
	mostlyNothing = []opsKind{isAbsent, isAbsent, isAbsent, isAbsent, isAbsent, isAbsent, isFile, isFolder}
	anything      = []opsKind{isFile, isFile, isFile, isSealed, isBlank, isFolder, isFilled, isPipe, isAbsent}
	filesOrNone   = []opsKind{isFile, isFile, isFile, isAbsent, isAbsent, isSealed, isBlank, isFolder, isPipe}
	folders       = []opsKind{isFolder, isFolder, isFolder, isFilled, isClosed, isFile, isAbsent}
)

// followOrNot are the flags of calls that may work on a link itself.
var followOrNot = []int{0, 0, 0, unix.AT_SYMLINK_NOFOLLOW}

var opsCalls []*opsCall

func init() { // the table and the functions in it need each other
	opsCalls = []*opsCall{
		{name: "open", weight: 34, acts: true, kinds: filesOrNone, forms: openForms, steps: openSteps, try: tryOpen, flags: []int{
			unix.O_RDONLY, unix.O_WRONLY, unix.O_WRONLY, unix.O_RDWR, unix.O_RDWR, unix.O_WRONLY | unix.O_APPEND, unix.O_WRONLY | unix.O_TRUNC,
			unix.O_RDONLY | unix.O_TRUNC, unix.O_RDWR | unix.O_TRUNC, unix.O_WRONLY | unix.O_CREAT, unix.O_RDWR | unix.O_CREAT,
			unix.O_RDONLY | unix.O_CREAT, unix.O_WRONLY | unix.O_CREAT | unix.O_TRUNC, unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL,
			unix.O_RDONLY | unix.O_CREAT | unix.O_EXCL, unix.O_RDWR | unix.O_CREAT | unix.O_TRUNC | unix.O_APPEND, unix.O_WRONLY | unix.O_NOFOLLOW,
			unix.O_WRONLY | unix.O_CREAT | unix.O_NOFOLLOW, unix.O_PATH | unix.O_WRONLY, unix.O_ACCMODE, unix.O_WRONLY | unix.O_DIRECTORY,
		}},
		{name: "unnamed file", weight: 4, kinds: folders, second: mostlyNothing, forms: openForms, steps: unnamedSteps, try: tryUnnamed,
			flags: []int{unix.O_TMPFILE | unix.O_WRONLY, unix.O_TMPFILE | unix.O_RDWR}},
		{name: "truncate", weight: 6, kinds: mostlyFiles, forms: pathForms, flags: []int{0, 2, 100}, steps: truncateSteps, try: tryTruncate},
		{name: "rename", weight: 14, kinds: anything, second: append([]opsKind{isAbsent, isAbsent, isAbsent, isAbsent, isAbsent, isAbsent}, anything...), forms: namingForms,
			flags: []int{0, 0, 0, unix.RENAME_NOREPLACE, unix.RENAME_EXCHANGE}, steps: renameSteps, try: tryRename},
		{name: "link", weight: 8, kinds: mostlyFiles, second: mostlyNothing, forms: openForms,
			flags: []int{0, unix.AT_SYMLINK_FOLLOW}, steps: linkSteps, try: tryLink},
		{name: "symlink", weight: 4, kinds: mostlyNothing, forms: namingForms, steps: createSteps("symlink"), try: trySymlink},
		{name: "mkdir", weight: 5, kinds: mostlyNothing, forms: namingForms, steps: createSteps("mkdir"), try: tryMkdir},
		{name: "mknod", weight: 4, kinds: mostlyNothing, forms: namingForms, steps: createSteps("mknod"), try: tryMknod,
			flags: []int{unix.S_IFIFO | 0o644, unix.S_IFREG | 0o644, unix.S_IFSOCK | 0o644}},
		{name: "unlink", weight: 8, kinds: anything, forms: namingForms, steps: removeSteps("unlink"), try: tryUnlink},
		{name: "rmdir", weight: 5, kinds: folders, forms: namingForms, steps: removeSteps("rmdir"), try: tryRmdir},
		{name: "chmod", weight: 7, kinds: anything, forms: holdingForms, flags: followOrNot, steps: metadataSteps("chmod"), try: tryChmod},
		{name: "chown", weight: 5, kinds: anything, forms: holdingForms, flags: followOrNot, steps: metadataSteps("chown"), try: tryChown},
		{name: "utimensat", weight: 6, kinds: anything, forms: holdingForms, flags: followOrNot, steps: metadataSteps("utime"), try: tryTimes},
		{name: "setxattr", weight: 5, kinds: anything, forms: xattrForms, flags: followOrNot, steps: metadataSteps("xattr"), try: tryXattr},
	}
}

// openSteps is what opening may change. What is done with a file that is open
// for writing is never refused.
func openSteps(o *operation) []opsStep {
	exclusive := o.flags&unix.O_CREAT != 0 && o.flags&unix.O_EXCL != 0
	target := o.first.target(!exclusive && o.flags&unix.O_NOFOLLOW == 0)
	open := opsStep{name: "open"}
	access := o.flags & unix.O_ACCMODE
	writes := access == unix.O_WRONLY || access == unix.O_RDWR
	switch {
	case o.flags&unix.O_PATH != 0: // only a place
	case target.kind == isAbsent:
		if o.flags&unix.O_CREAT != 0 {
			open.changes = []opsChange{{op: "create", object: target, entry: true}}
		}
	case exclusive: // there is something already
	case writes, o.flags&unix.O_TRUNC != 0 && target.kind != isPipe:
		open.changes = []opsChange{{op: "write", object: target}}
	}
	return []opsStep{open, {name: string(o.action)}}
}

func unnamedSteps(o *operation) []opsStep {
	folder, name := o.first.target(true), o.second.entry()
	return []opsStep{
		{"open", []opsChange{{op: "create", object: folder, inside: true}}},
		{"link", []opsChange{{op: "link", object: folder, inside: true}, {op: "link", object: name, entry: true}}},
	}
}

func truncateSteps(o *operation) []opsStep {
	return []opsStep{{"truncate", []opsChange{{op: "write", object: o.first.target(true)}}}}
}

func renameSteps(o *operation) []opsStep {
	return []opsStep{{"rename", []opsChange{
		{op: "rename", object: o.first.entry(), entry: true},
		{op: "rename", object: o.second.entry(), entry: true}}}}
}

// linkSteps: a file with a new name can be changed by that, so that its old one
// must be one that the policy lets be changed.
func linkSteps(o *operation) []opsStep {
	return []opsStep{{"link", []opsChange{
		{op: "link", object: o.first.target(o.flags&unix.AT_SYMLINK_FOLLOW != 0), entry: true},
		{op: "link", object: o.second.entry(), entry: true}}}}
}

func createSteps(name string) func(*operation) []opsStep {
	return func(o *operation) []opsStep {
		return []opsStep{{name, []opsChange{{op: "create", object: o.first.entry(), entry: true}}}}
	}
}

func removeSteps(name string) func(*operation) []opsStep {
	return func(o *operation) []opsStep {
		return []opsStep{{name, []opsChange{{op: "remove", object: o.first.entry(), entry: true}}}}
	}
}

func metadataSteps(op string) func(*operation) []opsStep {
	return func(o *operation) []opsStep {
		target := o.first.target(o.flags&unix.AT_SYMLINK_NOFOLLOW == 0)
		return []opsStep{{o.call.name, []opsChange{{op: op, object: target, metadata: true}}}}
	}
}
