package scripttest

import (
	"encoding/binary"
	"reflect"
	"testing"
	"unsafe"

	"github.com/confine-dev/confine/sandbox/local"
)

// Step is a call of a script, as a test reads it.
type Step struct {
	Index   int
	What    string
	Call    uintptr // SYS_…
	Args    [6]Argument
	Ignores uintptr // an errno that does not matter
	Want    []byte  // what the call's result is compared with; nil if with nothing
}

// Argument is one argument of a step: a number, the address of something, or
// the result of an earlier step.
type Argument struct {
	Number uintptr
	Ref    int // index of that step; -1: none

	addr unsafe.Pointer
}

// Steps reads a script by reflection. Indexes are those of the script.
func Steps(t *testing.T, s *local.Script) []Step {
	t.Helper()
	calls := reflect.ValueOf(s).Elem().FieldByName("calls")
	if !calls.IsValid() {
		t.Fatal("a local.Script has no field calls any more: teach this test its new form")
	}
	var list []Step
	for i := range calls.Len() {
		call := calls.Index(i)
		st := Step{Index: i, What: call.FieldByName("what").String(), Call: uintptr(call.FieldByName("nr").Uint()),
			Ignores: uintptr(call.FieldByName("ignore").Uint())}
		if want := call.FieldByName("want"); want.Len() > 0 {
			st.Want = want.Bytes()
		}
		for j := range st.Args {
			arg := call.FieldByName("args").Index(j)
			st.Args[j] = Argument{Number: uintptr(arg.FieldByName("value").Uint()), addr: arg.FieldByName("addr").UnsafePointer(), Ref: -1}
			if arg.FieldByName("isRef").Bool() {
				st.Args[j].Ref = int(arg.FieldByName("value").Uint())
			}
		}
		list = append(list, st)
	}
	return list
}

// Pointed is the memory that the pointers in a script's memory lead to, by their
// value.
func Pointed(t *testing.T, s *local.Script) map[uint64][]byte {
	t.Helper()
	points := reflect.ValueOf(s).Elem().FieldByName("points")
	if !points.IsValid() {
		t.Fatal("a local.Script has no field points any more: teach this test its new form")
	}
	memory := map[uint64][]byte{}
	for i := range points.Len() {
		target := points.Index(i).FieldByName("target").Bytes()
		memory[uint64(uintptr(unsafe.Pointer(&target[0])))] = target
	}
	return memory
}

// Text is the string that an argument points to; empty if it is no address.
func (a Argument) Text() string {
	if a.addr == nil {
		return ""
	}
	var s []byte
	for p := (*byte)(a.addr); *p != 0; p = (*byte)(unsafe.Add(unsafe.Pointer(p), 1)) {
		s = append(s, *p)
	}
	return string(s)
}

// Word is the n-th 64-bit number that an argument points to.
func (a Argument) Word(n int) uint64 {
	return binary.NativeEndian.Uint64(unsafe.Slice((*byte)(unsafe.Add(a.addr, 8*n)), 8))
}

// Find returns the steps of one call for which a condition holds; nil holds for
// each.
func Find(list []Step, call uintptr, when func(Step) bool) []Step {
	var found []Step
	for _, s := range list {
		if s.Call == call && (when == nil || when(s)) {
			found = append(found, s)
		}
	}
	return found
}

// Identity is what a step that compares a file expects: the beginning of its
// struct stat.
func Identity(dev, ino uint64) string {
	return string(binary.NativeEndian.AppendUint64(binary.NativeEndian.AppendUint64(nil, dev), ino))
}
