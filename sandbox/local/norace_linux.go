//go:build !race

package local

// helperEnv is the environment of confine's own helpers: none.
var helperEnv = []string{}
