// Command confine serves editors on stdio: it runs the shell commands that a
// model proposes in a sandbox of the operating system and asks the person when
// a command needs more. The subcommands run, doctor and version share its
// wiring, so that a person at a terminal gets what an editor gets.
//
//	confine serve
//	confine run 'go test ./...'
//
// Started by itself under a hidden name it is a helper process of a sandbox;
// package local has the table of those names.
package main

import (
	"os"

	"github.com/confine-dev/confine/sandbox/local"
)

func main() {
	local.Child(os.Args) // first: a helper does nothing of what follows
	catchBrokenPipes()
	os.Exit(runCommandLine(os.Args[1:]))
}
