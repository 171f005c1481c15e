// Package seatbelt is the provider that confines commands on macOS with
// sandbox-exec, a program of the system.
//
// Build turns a policy into a Profile: the text of its rules, and the paths that
// they speak of as parameters. It looks at nothing and runs on every system. Of
// the rules that match an operation the last one decides, so outer places come
// before inner ones, and what holds for everything comes first.
//
// Seatbelt decides by names, where the providers for Linux decide by mounts. So
// what is to stay as it is must not be moved either: no folder around it can be
// renamed or removed.
package seatbelt
