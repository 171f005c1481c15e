package restrict

// archRefusals: arm64 has no older forms of calls.
func archRefusals() []Case { return nil }
