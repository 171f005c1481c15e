// Package observe sees which operations a confined command is refused.
//
// The command's last seccomp filter stops every call that changes files by name
// or connects a socket, until the observer has answered. It reads the name from
// the stopped task, finds what it leads to in the command's own view, and asks
// two questions: does the sandbox refuse this, and would this process be allowed
// to do it? Only if both are true it is a denial. The answer to the kernel is the
// same in every case, "go on": the kernel decides, the observer tells.
//
// What is looked at are objects, not texts: folders are opened one by one without
// following links behind the command's back, and whether they can be written is
// read from the mounts that were found. Nothing that was learned of a name is
// kept for the next call, because the command can change what names mean at any
// time. A name that changes while it is looked at can still make one denial wrong
// or missing.
//
// What is not seen: calls on open descriptors, such as fchmod; datagrams that
// sendmsg sends to an address; what the static filter of the sandbox refuses,
// such as new namespaces and set-id bits (for both messages count as evidence, see
// sandbox.MergeDenials) and, where there are no namespaces, sockets of the internet.
// Reading is not watched.
package observe
