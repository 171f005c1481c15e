package sandboxtest

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// draft draws one operation.
type draft struct {
	*rand.Rand
	base  string
	op    *operation
	names int     // used so far
	area  opsArea // drawn last
}

// drawOperation makes the operation of a number in a scene. Whatever the base,
// it is the same but for that.
func drawOperation(seed uint64, number int, base string) *operation {
	d := &draft{Rand: rand.New(rand.NewPCG(seed, uint64(number))), base: base, op: &operation{number: number, base: base}}
	op := d.op
	op.call = weighted(d.Rand, opsCalls, func(c *opsCall) int { return c.weight })
	if len(op.call.flags) > 0 {
		op.flags = pick(d.Rand, op.call.flags)
	}
	if op.call.acts {
		op.action = d.action(op.flags)
	}
	op.first = d.file(op.call.kinds, op.call.forms)
	if op.call.second != nil {
		op.second = d.file(op.call.second, namingForms)
	}
	op.old = d.IntN(3) == 0
	return op
}

// action draws what is done with a file that was opened, and seldom what cannot
// be.
func (d *draft) action(flags int) opsAction {
	if d.perhaps(10) {
		return pick(d.Rand, opsActions)
	}
	switch flags & unix.O_ACCMODE {
	case unix.O_WRONLY:
		return pick(d.Rand, []opsAction{actNothing, actWrite, actTruncate, actCopy})
	case unix.O_RDWR:
		return pick(d.Rand, opsActions)
	}
	return actNothing
}

func pick[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }

func weighted[T any](r *rand.Rand, list []T, weight func(T) int) T {
	total := 0
	for _, one := range list {
		total += weight(one)
	}
	n := r.IntN(total)
	for _, one := range list {
		if n -= weight(one); n < 0 {
			return one
		}
	}
	panic("unreachable: the weights add up to the total")
}

// perhaps is true in so many of a hundred cases.
func (d *draft) perhaps(percent int) bool { return d.IntN(100) < percent }

// opsSuffixes make names that careless code stumbles over.
var opsSuffixes = []string{"", "", "", ".txt", " blank", "\nline", "\xff\xfe", "'\"`", "\\", "…", "%s", "~", "#", "..", strings.Repeat("x", 200)}

// name makes a name that nothing else in the scene has. It begins with the
// operation's number, so that what is seen of it can be told from the rest.
func (d *draft) name() string {
	d.names++
	return fmt.Sprintf("%d%c%s", d.op.number, 'a'+d.names-1, pick(d.Rand, opsSuffixes))
}

// opsOdd says how often files lie in an area.
type opsOdd struct {
	area   opsArea
	weight int
}

var opsOdds = []opsOdd{{areaOutside, 30}, {areaWork, 30}, {areaSecond, 10}, {areaGuarded, 8}, {areaKept, 12}, {areaGranted, 10}}

// group draws a folder that the operation shares with others, often in the same
// area as the last.
func (d *draft) group() string {
	if d.area == "" || !d.perhaps(40) {
		d.area = weighted(d.Rand, opsOdds, func(o opsOdd) int { return o.weight }).area
	}
	return opsGroup(d.base, d.area, d.op.number)
}

func (d *draft) add(o *opsObject) *opsObject {
	d.op.objects = append(d.op.objects, o)
	return o
}

// file draws a file of one of the kinds, often behind links, and a name for it.
func (d *draft) file(kinds []opsKind, forms []opsForm) opsFile {
	object := d.object(kinds)
	if d.perhaps(25) {
		object = d.link(object)
	}
	return d.spell(object, pick(d.Rand, forms))
}

// object draws what is no link.
func (d *draft) object(kinds []opsKind) *opsObject {
	if d.perhaps(6) {
		return d.top(kinds)
	}
	parent, there := d.parent()
	o := &opsObject{kind: isAbsent}
	if there {
		o.kind = pick(d.Rand, kinds)
	}
	o.path = filepath.Join(parent, d.name())
	if (o.kind == isFile || o.kind == isSealed) && d.perhaps(8) {
		o.other = filepath.Join(d.group(), d.name())
	}
	return d.add(o)
}

// parent draws the folder that a file lies in; there says whether files can.
func (d *draft) parent() (dir string, there bool) {
	dir = d.group()
	if d.perhaps(85) {
		return dir, true
	}
	kind := pick(d.Rand, []opsKind{isFolder, isFolder, isClosed, isClosed, isBarred, isFile, isAbsent})
	own := d.add(&opsObject{path: filepath.Join(dir, d.name()), kind: kind})
	return own.path, kind != isFile && kind != isAbsent
}

// top draws a file or folder that the policy names.
func (d *draft) top(kinds []opsKind) *opsObject {
	o := &opsObject{top: pick(d.Rand, []opsTop{topRoot, topProtected, topGranted}), kind: pick(d.Rand, []opsKind{isFile, isFolder, isFilled})}
	if o.top == topRoot && o.kind == isFile {
		o.kind = isFolder
	}
	switch o.top {
	case topProtected:
		// At the top of a root: deeper ones cannot be protected.
		o.path = filepath.Join(d.base, string(areaGuarded), d.name())
	case topGranted: // also of what is protected, or writable anyway
		o.path = filepath.Join(opsGroup(d.base, pick(d.Rand, []opsArea{areaTops, areaTops, areaKept, areaWork}), d.op.number), d.name())
	default:
		o.path = filepath.Join(opsGroup(d.base, areaTops, d.op.number), d.name())
	}
	return d.add(o)
}

// link makes one to three links, the last of which leads to end. A few lead
// nowhere.
func (d *draft) link(end *opsObject) *opsObject {
	if d.perhaps(5) {
		name := d.name()
		return d.add(&opsObject{path: filepath.Join(d.group(), name), kind: isLink, text: name}) // to itself
	}
	to := end.path
	for {
		l := d.add(&opsObject{path: filepath.Join(d.group(), d.name()), kind: isLink, leads: end})
		l.text = d.textTo(l.path, to)
		if d.perhaps(70) {
			return l
		}
		to = l.path
	}
}

// textTo is what a link holds to lead somewhere.
func (d *draft) textTo(link, to string) string {
	if d.perhaps(50) {
		return to
	}
	return d.relative(filepath.Dir(link), to)
}

func (d *draft) relative(from, to string) string {
	rel, err := filepath.Rel(from, to)
	if err != nil {
		panic(err) // both are absolute
	}
	return rel
}

// spell draws a name for an object.
func (d *draft) spell(o *opsObject, form opsForm) opsFile {
	f := opsFile{object: o, form: form}
	dir, name := filepath.Split(o.path)
	dir = filepath.Clean(dir)
	ending := d.ending(o.end().kind)
	name += ending
	switch form {
	case formPath:
		f.path = d.way(dir) + "/" + name
	case formReopenRead, formReopenPath:
		f.path = d.way(dir) + "/" + name
		f.from = pick(d.Rand, []string{"/proc/self/fd/", "/dev/fd/", "/proc/thread-self/fd/"})
	case formHeld, formHeldPath:
		f.path = d.way(dir) + "/" + name
	default:
		if first := d.op.first; form == formEntered && first.form == formEntered {
			f.from, f.physical = first.from, first.physical // there is only one working directory
			f.path = d.relative(f.physical, o.path) + ending
			return f
		}
		if d.perhaps(50) {
			f.from, f.physical, f.path = d.way(dir), dir, name
			return f
		}
		f.physical = d.group()
		f.from, f.path = d.way(f.physical), d.relative(f.physical, o.path)+ending
	}
	return f
}

// ending draws what may follow a name. Where it is not empty, links are followed
// whatever the call says.
func (d *draft) ending(kind opsKind) string {
	switch kind {
	case isFolder, isFilled, isClosed, isBarred:
		if d.perhaps(15) {
			return pick(d.Rand, []string{"/", "/", "/.", "//."})
		}
	}
	return ""
}

// way draws a path to a folder.
func (d *draft) way(dir string) string {
	switch d.IntN(9) {
	case 0: // through a link
		l := d.add(&opsObject{path: filepath.Join(d.group(), d.name()), kind: isLink})
		l.text = d.textTo(l.path, dir)
		return l.path
	case 1: // through a link and back up
		inner := dir + "/" + opsInner
		if !strings.HasPrefix(filepath.Base(dir), "g") {
			return inner + "/.." // mostly nothing
		}
		l := d.add(&opsObject{path: filepath.Join(d.group(), d.name()), kind: isLink})
		l.text = d.textTo(l.path, inner)
		return l.path + "/.."
	case 2: // over another folder
		other := d.group()
		return other + "/./" + d.relative(other, dir)
	case 3:
		return strings.ReplaceAll(dir, "/", "//")
	case 4:
		return "/proc/self/root" + dir
	case 5:
		return "/proc/self/cwd/../../../../../../../../../../../../../.." + dir
	}
	return dir
}
