package observe

// archFileTraps would be older forms of calls, which arm64 never had.
func archFileTraps() []trap { return nil }

// archMetadataTraps would be the same for what is known of a file.
func archMetadataTraps() []trap { return nil }
