package landlock

import (
	"encoding/binary"
	"reflect"
	"testing"
	"unsafe"

	"github.com/confine-dev/confine/sandbox/local"
)

// step is a call of a script, as a test reads it.
type step struct {
	index   int
	what    string
	nr      uintptr
	args    [6]stepArgument
	ignores uintptr
	want    []byte // what the call's result is compared with; nil if with nothing
}

// stepArgument is one argument of a step: a number, the address of something, or
// the result of an earlier step.
type stepArgument struct {
	number uintptr
	addr   unsafe.Pointer
	ref    int // -1: none
}

// steps reads a script. A launch is a value, but package local lets nobody
// look into it save by reflection.
func steps(t *testing.T, s *local.Script) []step {
	t.Helper()
	calls := reflect.ValueOf(s).Elem().FieldByName("calls")
	if !calls.IsValid() {
		t.Fatal("a local.Script has no field calls any more: teach this test its new form")
	}
	var list []step
	for i := range calls.Len() {
		call := calls.Index(i)
		st := step{index: i, what: call.FieldByName("what").String(), nr: uintptr(call.FieldByName("nr").Uint()),
			ignores: uintptr(call.FieldByName("ignore").Uint())}
		if want := call.FieldByName("want"); want.Len() > 0 {
			st.want = want.Bytes()
		}
		for j := range st.args {
			arg := call.FieldByName("args").Index(j)
			st.args[j] = stepArgument{number: uintptr(arg.FieldByName("value").Uint()), addr: arg.FieldByName("addr").UnsafePointer(), ref: -1}
			if arg.FieldByName("isRef").Bool() {
				st.args[j].ref = int(arg.FieldByName("ref").Int())
			}
		}
		list = append(list, st)
	}
	return list
}

// text is the string that an argument points to.
func (a stepArgument) text() string {
	if a.addr == nil {
		return ""
	}
	var s []byte
	for p := (*byte)(a.addr); *p != 0; p = (*byte)(unsafe.Add(unsafe.Pointer(p), 1)) {
		s = append(s, *p)
	}
	return string(s)
}

// word is the n-th 64-bit number that an argument points to.
func (a stepArgument) word(n int) uint64 {
	return binary.NativeEndian.Uint64(unsafe.Slice((*byte)(unsafe.Add(a.addr, 8*n)), 8))
}

// find returns the steps with a call number for which the condition holds.
func find(list []step, nr uintptr, when func(step) bool) []step {
	var found []step
	for _, s := range list {
		if s.nr == nr && when(s) {
			found = append(found, s)
		}
	}
	return found
}

func always(step) bool { return true }
