package sandbox

import "sync"

// anchors are parts of every message that parseMessage understands. Each has
// at least anchorLength bytes.
var anchors = []string{
	"ission denied", "is denied", "AccessDenied", "t permitted", "only file system",
	"resource busy", "unreachable", "ENETUNREACH", "ion refused", "ECONNREFUSED",
	"name resolution", "failure resolving", "resolve host", "EAI_AGAIN", "onnect to server",
	"writable by group", "create new namespace", "usable sandbox",
}

// anchorLength is the length of the part that nextAnchor looks for first.
const anchorLength = 9

// anchorTable says for each two bytes where in the first part of which anchors
// they lie.
type anchorTable struct {
	places [1 << 16]uint8  // index into lists, 0 for nowhere
	lists  [][]anchorPlace // lists[0] is not used
}

type anchorPlace struct {
	anchor string
	offset int
}

var anchorPlaces = sync.OnceValue(func() *anchorTable {
	t := &anchorTable{lists: make([][]anchorPlace, 1)}
	for _, anchor := range anchors {
		for offset := range anchorLength - 1 {
			place := &t.places[uint16(anchor[offset])<<8|uint16(anchor[offset+1])]
			if *place == 0 {
				*place = uint8(len(t.lists))
				t.lists = append(t.lists, nil)
			}
			t.lists[*place] = append(t.lists[*place], anchorPlace{anchor, offset})
		}
	}
	return t
})

// nextAnchor finds the first anchor in data; at is -1 if there is none.
//
// Most output holds none, and all of it passes through here. Since each anchor
// begins with eight pairs of bytes, it is enough to look at every eighth pair.
func nextAnchor(data []byte) (at int, anchor string) {
	table := anchorPlaces()
	for i := anchorLength - 2; i+1 < len(data); i += anchorLength - 1 {
		place := table.places[uint16(data[i])<<8|uint16(data[i+1])]
		if place == 0 {
			continue
		}
		at = -1
		for _, p := range table.lists[place] {
			begin := i - p.offset
			end := begin + len(p.anchor)
			if end <= len(data) && string(data[begin:end]) == p.anchor && (at < 0 || begin < at) {
				at, anchor = begin, p.anchor
			}
		}
		if at >= 0 {
			return at, anchor
		}
	}
	return -1, ""
}
