package landlock

// archRefusals: arm64 has no older forms of calls.
func archRefusals() []refusal { return nil }
