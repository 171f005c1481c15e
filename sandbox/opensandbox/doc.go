// Package opensandbox runs commands in a remote OpenSandbox: a service that makes
// containers and runs commands in them. It confines nothing itself. What holds there is
// its operator's to answer for, so that no facet is ever called enforced.
//
// The default interface is that of the lifecycle server (a sandbox per session is made,
// used again, renewed and deleted) and of execd, which runs in each sandbox. The other
// one is a single call per command.
package opensandbox
