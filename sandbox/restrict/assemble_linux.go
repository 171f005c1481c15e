package restrict

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"runtime"
	"slices"

	"golang.org/x/sys/unix"
)

// Offsets in struct seccomp_data (seccomp(2)).
const (
	dataNumber = 0
	dataArch   = 4
	dataArgs   = 16
)

// auditArch are the values of seccomp_data.arch (linux/audit.h).
var auditArch = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}

// x32Bit marks calls of the x32 ABI on amd64; no call of arm64 has it.
const x32Bit = 0x40000000

// Instructions of a filter.
const (
	load = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	eq   = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	ge   = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
	and  = unix.BPF_ALU | unix.BPF_AND | unix.BPF_K
	ret  = unix.BPF_RET | unix.BPF_K
)

// Assemble makes the program of a filter for this machine, which allows what no
// case speaks of. Calls of another architecture do not exist (ENOSYS): their
// numbers mean other things.
//
// A call is found by halving the list, and equal decisions are one instruction:
// when a filter is installed, as in every run, the kernel translates all of it and
// follows it once for every call there is.
func Assemble(list []Case) []unix.SockFilter { return assemble(list, auditArch[runtime.GOARCH]) }

func assemble(list []Case, arch uint32) []unix.SockFilter {
	sorted := slices.SortedStableFunc(slices.Values(list), func(a, b Case) int { return cmp.Compare(a.Call, b.Call) })
	var calls [][]Case
	for _, c := range sorted {
		if n := len(calls); n > 0 && calls[n-1][0].Call == c.Call {
			calls[n-1] = append(calls[n-1], c)
			continue
		}
		calls = append(calls, []Case{c})
	}
	a := assembler{decisions: map[Action]place{}}
	a.jump(ge, x32Bit, a.decision(Refuse(unix.ENOSYS)), a.search(calls))
	number := a.put(unix.SockFilter{Code: load, K: dataNumber})
	a.jump(eq, arch, number, a.decision(Refuse(unix.ENOSYS)))
	a.put(unix.SockFilter{Code: load, K: dataArch})
	slices.Reverse(a.program)
	return a.program
}

// assembler writes a program from its end, because jumps lead forward only.
type assembler struct {
	program   []unix.SockFilter // the last instruction first
	decisions map[Action]place  // each is written once
}

// place is an instruction, counted from the end of the program.
type place int

// put writes what comes before all that is written already.
func (a *assembler) put(in unix.SockFilter) place {
	a.program = append(a.program, in)
	return place(len(a.program))
}

// jump goes on at yes if the comparison holds, else at no. A list for which that
// is too far is none that was ever tried.
func (a *assembler) jump(compare uint16, value uint32, yes, no place) place {
	next := place(len(a.program))
	if next-min(yes, no) > math.MaxUint8 {
		panic(fmt.Sprintf("a filter would have to jump over %d instructions", next-min(yes, no)))
	}
	return a.put(unix.SockFilter{Code: compare, K: value, Jt: uint8(next - yes), Jf: uint8(next - no)})
}

// decision is the end of every way that leads to it.
func (a *assembler) decision(do Action) place {
	at, known := a.decisions[do]
	if !known {
		at = a.put(unix.SockFilter{Code: ret, K: uint32(do)})
		a.decisions[do] = at
	}
	return at
}

// search finds the call whose number is loaded among calls, which are sorted, and
// decides.
func (a *assembler) search(calls [][]Case) place {
	allow := a.decision(unix.SECCOMP_RET_ALLOW)
	switch len(calls) {
	case 0:
		return allow
	case 1:
		return a.jump(eq, uint32(calls[0][0].Call), a.choose(calls[0], allow), allow)
	}
	middle := len(calls) / 2
	upper := a.search(calls[middle:])
	return a.jump(ge, uint32(calls[middle][0].Call), upper, a.search(calls[:middle]))
}

// choose does what the first case of one call wants whose conditions hold, or goes
// on at otherwise.
func (a *assembler) choose(cases []Case, otherwise place) place {
	for _, c := range slices.Backward(cases) {
		here := a.decision(c.Do)
		for _, when := range slices.Backward(c.When) {
			yes, no := here, otherwise
			if when.not {
				yes, no = no, yes
			}
			a.jump(eq, when.value, yes, no)
			if when.mask != math.MaxUint32 {
				a.put(unix.SockFilter{Code: and, K: when.mask})
			}
			here = a.put(unix.SockFilter{Code: load, K: argument(when.arg)})
		}
		otherwise = here
	}
	return otherwise
}

// argument is the offset of the low half of an argument on little-endian
// machines, which all supported ones are.
func argument(n int) uint32 { return dataArgs + 8*uint32(n) }

// Code is a program as the kernel reads it: struct sock_filter, one after the
// other.
func Code(program []unix.SockFilter) []byte {
	code := make([]byte, 0, len(program)*unix.SizeofSockFilter)
	for _, in := range program {
		code = binary.NativeEndian.AppendUint16(code, in.Code)
		code = append(code, in.Jt, in.Jf)
		code = binary.NativeEndian.AppendUint32(code, in.K)
	}
	return code
}
