// Package landlock turns a policy into the launch of a confined child: its view
// of the file system, its Landlock ruleset, its capabilities and its seccomp
// filter. It is the embedded provider: nothing needs to be installed.
//
// Nothing here restricts the calling process. The package only writes lists of
// system calls; package local runs them in the child.
//
// With user namespaces three layers stand between the command and the host: a
// view (package view) in which everything but the policy's roots and grants is
// read-only, a Landlock domain that allows the same writes and no others, and a
// seccomp filter against what neither of them governs (both package restrict). Where the host refuses namespaces the
// last two stand alone, and Claims says what that leaves open.
package landlock
