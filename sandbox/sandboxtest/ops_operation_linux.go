package sandboxtest

import (
	"fmt"
	"strings"
)

// operation is a system call, or a short chain of them, on files of its own: no
// operation changes what another finds. It is drawn from a seed and its number
// alone, so that the child that performs it needs no more than these.
type operation struct {
	number int
	base   string // of the scene
	call   *opsCall
	flags  int
	action opsAction // of an operation that opens
	first  opsFile
	second opsFile // if the call takes two
	old    bool    // by the system call that newer ones replaced, where there is one

	objects []*opsObject // what must be there before, outer before inner
}

// opsFile is a file and how the operation names it.
type opsFile struct {
	object   *opsObject
	form     opsForm
	from     string // folder that is opened or entered first, or of descriptors
	physical string // what from really is
	path     string // as it is passed, or opened first
}

// opsForm is a way of naming a file to a system call.
type opsForm string

const (
	formPath       opsForm = "path"
	formEntered    opsForm = "relative to the working directory"
	formBelowRead  opsForm = "relative to a descriptor"
	formBelowPath  opsForm = "relative to a path descriptor"
	formBelowProc  opsForm = "below a descriptor in /proc"
	formReopenRead opsForm = "descriptor by name"
	formReopenPath opsForm = "path descriptor by name"
	formHeld       opsForm = "descriptor"
	formHeldPath   opsForm = "path descriptor"
)

// entry is what a call works on that changes a name. A dot is none that can be
// changed, but it has a place.
func (f opsFile) entry() *opsObject {
	if strings.HasSuffix(f.path, "/.") {
		return &opsObject{path: f.object.end().path + "/.", kind: isFolder}
	}
	return f.object
}

// target is what a call works on that follows links or does not.
func (f opsFile) target(follow bool) *opsObject {
	switch f.form {
	case formHeld, formHeldPath:
		return f.object.end()
	case formReopenRead, formReopenPath:
		if !follow {
			return opsOfProc
		}
	}
	if follow || strings.HasSuffix(f.path, "/") || strings.HasSuffix(f.path, "/.") {
		return f.object.end()
	}
	return f.object
}

// opsOfProc is the link by which /proc names a descriptor.
var opsOfProc = &opsObject{path: "/proc", kind: isLink}

func (f opsFile) String() string {
	text := fmt.Sprintf("%s %q", f.form, f.path)
	if f.from != "" {
		text += fmt.Sprintf(" from %q", f.from)
	}
	return text
}

func (o *operation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "operation %d: %s(%v", o.number, o.call.name, o.first)
	if o.call.second != nil {
		fmt.Fprintf(&b, ", %v", o.second)
	}
	fmt.Fprintf(&b, "), flags %#x", o.flags)
	if o.action != actNothing {
		fmt.Fprintf(&b, ", then %s", o.action)
	}
	if o.old {
		b.WriteString(", by the older call")
	}
	b.WriteString("; where")
	for _, object := range o.objects {
		fmt.Fprintf(&b, "\n\t%v", object)
	}
	return b.String()
}
