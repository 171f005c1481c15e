//go:build race

package local

// helperEnv is the environment of confine's own helpers. Under the race
// detector a program sleeps for a second when it ends, unless told otherwise.
var helperEnv = []string{"GORACE=atexit_sleep_ms=0"}
