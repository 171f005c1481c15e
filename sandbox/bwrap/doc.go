// Package bwrap is the provider that lets bubblewrap, a program of the system,
// make a run's namespaces and its view of the file system. confine's own init
// then restricts itself inside (Landlock, seccomp) before it starts the command.
//
// The package finds the program, turns a policy into its arguments, and knows
// why it failed. It takes what is to be seen and written from package view and
// the restrictions from package restrict, as the Landlock provider does; package
// local executes it.
//
// There are two levels. Where confine may make user namespaces itself, bubblewrap
// runs inside the session's, and shares network, temporary files and caches
// with the session's other runs. Where only bubblewrap may (a profile of AppArmor
// allows it by name), each run has a network of its own and the temporary files
// are a folder of the session's.
package bwrap
