package local

import "github.com/confine-dev/confine/sandbox"

// Interaction is what engines of this system offer.
func Interaction() sandbox.Interaction {
	return sandbox.Interaction{Input: true, Terminal: hasTerminals}
}

// Interaction implements sandbox.Provider.
func (e *Engine) Interaction() sandbox.Interaction { return Interaction() }

// takesInput reports whether a command has input other than the null device.
func takesInput(spec sandbox.Spec) bool { return spec.Stdin != nil || spec.StdinOpen }
