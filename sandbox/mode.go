package sandbox

import "fmt"

// Mode says how much a command may do. The zero value is not a mode.
type Mode string

// The four modes, from the narrowest. ExternalSandbox stands beside them: the
// user declares that something outside already confines what is run.
const (
	ReadOnly         Mode = "read-only"
	WorkspaceWrite   Mode = "workspace-write"
	DangerFullAccess Mode = "danger-full-access"
	ExternalSandbox  Mode = "external-sandbox"
)

// Modes lists every mode in widening order, ExternalSandbox last.
var Modes = []Mode{ReadOnly, WorkspaceWrite, DangerFullAccess, ExternalSandbox}

var modeRank = map[Mode]int{ReadOnly: 1, WorkspaceWrite: 2, DangerFullAccess: 3}

// ParseMode accepts exactly the spellings of Modes.
func ParseMode(s string) (Mode, error) {
	for _, m := range Modes {
		if string(m) == s {
			return m, nil
		}
	}
	return "", fmt.Errorf("unknown sandbox mode %q: use read-only, workspace-write, danger-full-access or external-sandbox", s)
}

// Confined reports whether the mode asks for a provider. A mode that is not
// one of the known four counts as confined, so that a mistake fails closed.
func (m Mode) Confined() bool { return m != DangerFullAccess && m != ExternalSandbox }

// WiderThan reports whether m allows strictly more than o. ExternalSandbox has
// no place in the order: it is neither wider nor narrower than anything.
func (m Mode) WiderThan(o Mode) bool {
	a, b := modeRank[m], modeRank[o]
	return a > 0 && b > 0 && a > b
}

// WiderModes lists the modes strictly wider than m, narrowest first.
func (m Mode) WiderModes() []Mode {
	var wider []Mode
	for _, o := range Modes {
		if o.WiderThan(m) {
			wider = append(wider, o)
		}
	}
	return wider
}
