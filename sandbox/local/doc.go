// Package local starts, streams and ends commands on this machine, for every
// provider that confines by preparing a child process.
//
// A Wrapper (landlock, bwrap, …) compiles a policy into a Launch: an ordered
// list of named system calls. The engine executes the list in a child cloned
// from this process, which then becomes the run's init, which starts the
// command. Whether the command began is known from the init's records, never
// from text.
//
// Process tree of a run with namespaces:
//
//	confine serve
//	├── confine __guardian       cleans up when the server dies
//	└── confine-init             PID 1 of the run's PID namespace
//	    └── bash -c '…'          the command
package local
