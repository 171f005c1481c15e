package local

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"unsafe"
)

// orders are what an init finds in its own image: calls to make before it starts
// anything, and the program to start. Without a program it takes that, and the
// environment, from its arguments.
type orders struct {
	script     *Script
	path       string
	argv, envp []string
}

// Sizes of what init_linux_*.s reads; the fields are in ordersData and carry.
const (
	ordersHeader = 40  // number of calls, their address, path, argv, envp
	carriedCall  = 112 // number, six arguments, which of them are results, ignored error, patch, two to compare, their size, result
)

// maxCarried is what fits into a failure's record besides the error.
const maxCarried = 1 << 20

// region is memory of this process that the orders need, and where it will be.
type region struct {
	first unsafe.Pointer
	size  uintptr
	at    uint64
}

func (r region) start() uintptr { return uintptr(r.first) }
func (r region) end() uintptr   { return uintptr(r.first) + r.size }

// data lays the orders out for an image in which they begin at the given address.
func (o orders) data(address uint64) ([]byte, error) {
	var calls []call
	var points []point
	if o.script != nil {
		calls, points = o.script.calls, o.script.points
	}
	if len(calls) > maxCarried {
		return nil, errors.New("too many calls")
	}
	regions, err := regionsOf(calls, points)
	if err != nil {
		return nil, err
	}
	out := make([]byte, ordersHeader+carriedCall*len(calls))
	for i := range regions {
		r := &regions[i]
		out = pad(out)
		r.at = address + uint64(len(out))
		out = append(out, unsafe.Slice((*byte)(r.first), r.size)...)
	}
	l := layout{out: out, address: address, regions: regions}
	for _, p := range points {
		l.put(l.offset(l.carried(&p.at[0])), l.carried(&p.target[0]))
	}
	for i, c := range calls {
		l.carry(ordersHeader+carriedCall*i, c)
	}
	l.put(0, uint64(len(calls)))
	l.put(8, address+ordersHeader)
	if o.path != "" {
		l.put(16, l.text(o.path))
		l.put(24, l.texts(o.argv))
		l.put(32, l.texts(o.envp))
	}
	return l.out, nil
}

// regionsOf finds all memory that calls are given, each byte once.
func regionsOf(calls []call, points []point) ([]region, error) {
	var all []region
	add := func(p unsafe.Pointer, size int) {
		if size > 0 {
			all = append(all, region{first: p, size: uintptr(size)})
		}
	}
	for _, c := range calls {
		for _, a := range c.args {
			if a.addr != nil && a.size == 0 {
				return nil, fmt.Errorf("%s: an argument cannot be carried", c.what)
			}
			add(a.addr, int(a.size))
		}
		if c.patch != nil {
			add(unsafe.Pointer(&c.patch[0]), 4)
		}
		if c.compare != nil {
			add(unsafe.Pointer(&c.compare[0]), len(c.want))
			add(unsafe.Pointer(&c.want[0]), len(c.want))
		}
	}
	for _, p := range points {
		add(unsafe.Pointer(&p.at[0]), len(p.at))
		add(unsafe.Pointer(&p.target[0]), len(p.target))
	}
	slices.SortFunc(all, func(a, b region) int {
		return cmp.Or(cmp.Compare(a.start(), b.start()), cmp.Compare(b.end(), a.end()))
	})
	var merged []region
	for _, r := range all {
		if n := len(merged); n > 0 && r.start() < merged[n-1].end() {
			last := &merged[n-1]
			last.size = max(last.end(), r.end()) - last.start()
			continue
		}
		merged = append(merged, r)
	}
	return merged, nil
}

// layout is an image's data while it is written.
type layout struct {
	out     []byte
	address uint64 // of out
	regions []region
}

func (l *layout) put(offset int, value uint64) {
	binary.NativeEndian.PutUint64(l.out[offset:], value)
}

func (l *layout) offset(at uint64) int { return int(at - l.address) }

// carried is where a byte of this process will be.
func (l *layout) carried(p *byte) uint64 {
	at := uintptr(unsafe.Pointer(p))
	i, _ := slices.BinarySearchFunc(l.regions, at, func(r region, at uintptr) int {
		switch {
		case r.end() <= at:
			return -1
		case r.start() > at:
			return 1
		}
		return 0
	})
	r := l.regions[i] // everything that is pointed to was collected
	return r.at + uint64(at-r.start())
}

// carry writes one call.
func (l *layout) carry(offset int, c call) {
	fields := [carriedCall / 8]uint64{0: uint64(c.nr), 8: uint64(c.ignore)}
	for i, a := range c.args {
		switch {
		case a.isRef:
			fields[1+i], fields[7] = uint64(a.value), fields[7]|1<<i
		case a.addr != nil:
			fields[1+i] = l.carried((*byte)(a.addr))
		default:
			fields[1+i] = uint64(a.value)
		}
	}
	if c.patch != nil {
		fields[9] = l.carried(&c.patch[0])
	}
	if c.compare != nil {
		fields[10], fields[11], fields[12] = l.carried(&c.compare[0]), l.carried(&c.want[0]), uint64(len(c.want))
	}
	for i, f := range fields {
		l.put(offset+8*i, f)
	}
}

// text adds a text and returns its address.
func (l *layout) text(s string) uint64 {
	at := l.address + uint64(len(l.out))
	l.out = append(append(l.out, s...), 0)
	return at
}

// texts adds a list as execve wants it.
func (l *layout) texts(list []string) uint64 {
	addresses := make([]uint64, 0, len(list)+1)
	for _, s := range list {
		addresses = append(addresses, l.text(s))
	}
	l.out = pad(l.out)
	at := l.address + uint64(len(l.out))
	for _, a := range append(addresses, 0) {
		l.out = binary.NativeEndian.AppendUint64(l.out, a)
	}
	return at
}

// pad aligns what follows.
func pad(b []byte) []byte { return append(b, make([]byte, -len(b)&15)...) }
