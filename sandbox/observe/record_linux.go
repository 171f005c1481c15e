package observe

import (
	"container/list"

	"github.com/confine-dev/confine/sandbox"
)

// record remembers what was refused. It is bounded: what was refused longest ago
// is forgotten first, since it is the last refusals that make a command fail.
type record struct {
	byWhat  map[what]*list.Element
	order   list.List // of *sandbox.Denial, the one that was seen last at the back
	bytes   int
	omitted int // operations that were forgotten
}

// what makes two refusals the same.
type what struct{ op, path, address, errno, exe string }

// Limits of a record.
const (
	maxRemembered = 1024
	maxBytes      = 256 << 10
	maxAnswered   = 64 // denials that an answer lists
)

func newRecord() *record { return &record{byWhat: map[what]*list.Element{}} }

func keyOf(d *sandbox.Denial) what { return what{d.Op, d.Path, d.Address, d.Errno, d.Exe} }

func (d what) size() int { return len(d.op) + len(d.path) + len(d.address) + len(d.errno) + len(d.exe) }

// add counts a refused operation.
func (r *record) add(d sandbox.Denial) {
	key := keyOf(&d)
	if known := r.byWhat[key]; known != nil {
		k := known.Value.(*sandbox.Denial)
		k.Count++
		k.Idle = k.Idle && d.Idle
		r.order.MoveToBack(known)
		return
	}
	d.Evidence, d.Count = sandbox.Observed, 1
	r.byWhat[key] = r.order.PushBack(&d)
	for r.bytes += key.size(); r.order.Len() > maxRemembered || r.bytes > maxBytes; {
		r.forget()
	}
}

// forget drops what was seen longest ago.
func (r *record) forget() {
	oldest := r.order.Remove(r.order.Front()).(*sandbox.Denial)
	key := keyOf(oldest)
	delete(r.byWhat, key)
	r.bytes -= key.size()
	r.omitted += oldest.Count
}

// answer lists what is remembered, as far as an answer can hold it, and how many
// operations are not in it.
func (r *record) answer() (denials []sandbox.Denial, omitted int) {
	for r.order.Len() > maxAnswered {
		r.forget()
	}
	for e := r.order.Front(); e != nil; e = e.Next() {
		denials = append(denials, *e.Value.(*sandbox.Denial))
	}
	return denials, r.omitted
}
