package rpc

// outline is an io.Writer that reads a JSON object as it passes by and keeps
// only its id and whether it has a method: enough to answer a message that is
// too large to keep. Without that, the peer would wait for ever. Text that is
// not JSON yields nonsense, never harm: the id is checked before use.
type outline struct {
	id     []byte // the value of the member "id", verbatim, at most maxID bytes
	method bool   // there is a member "method"

	depth   int
	quoted  bool   // inside a string
	escaped bool   // after a backslash
	value   bool   // at depth 1, after the colon
	key     string // the member's name, as written
	token   []byte // what was read of the name or value; at most maxID+1 bytes
}

func (o *outline) Write(p []byte) (int, error) {
	for _, b := range p {
		o.next(b)
	}
	return len(p), nil
}

func (o *outline) next(b byte) {
	if o.quoted {
		o.keep(b)
		switch {
		case o.escaped:
			o.escaped = false
		case b == '\\':
			o.escaped = true
		case b == '"':
			o.quoted = false
		}
		return
	}
	switch b {
	case ' ', '\t', '\r', '\n':
	case '{', '[':
		o.depth++
	case '}', ']':
		if o.depth == 1 {
			o.member()
		}
		o.depth--
	case ':':
		if o.depth == 1 {
			o.key, o.token, o.value = string(o.token), o.token[:0], true
		}
	case ',':
		if o.depth == 1 {
			o.member()
		}
	default:
		o.quoted = b == '"'
		o.keep(b)
	}
}

func (o *outline) keep(b byte) {
	if o.depth == 1 && len(o.token) <= maxID {
		o.token = append(o.token, b)
	}
}

// member ends one member of the object.
func (o *outline) member() {
	switch {
	case !o.value:
	case o.key == `"id"`:
		o.id = append([]byte(nil), o.token...)
	case o.key == `"method"`:
		o.method = true
	}
	o.token, o.value = o.token[:0], false
}
