// Package scripttest reads local.Script, which is a value that nobody else may
// look into, for the tests of the packages that write scripts.
package scripttest
