// Package restrict writes the restrictions that a process puts on itself as
// lists of system calls: a Landlock ruleset, a seccomp filter, the end of its
// privileges. Every provider for Linux uses the same.
//
// Nothing here restricts the calling process: whoever runs the list does that.
package restrict
