package restrict

// conditionalHere and unconditionalHere: arm64 has no calls of its own.
var (
	conditionalHere   []asked
	unconditionalHere []uintptr
)
