package main

import (
	"fmt"
	"os"
)

var helpCommand = command{
	name:     "help",
	synopsis: "[SUBCOMMAND]",
	summary:  "Explain confine or one of its subcommands.",
	failed:   1,
}

// help lists the subcommands and is one of them, which an initialiser of the
// variable could not express.
func init() { helpCommand.run = runHelp }

func runHelp(args []string) (int, error) {
	flags := newFlags("help")
	if err := parseFlags(flags, args); err != nil {
		return 0, err
	}
	if flags.NArg() == 0 {
		fmt.Fprint(os.Stdout, "confine runs shell commands in a sandbox of the operating system and asks\nbefore one gets more.\n\nusage: confine SUBCOMMAND …\n\n")
		for _, c := range commands() {
			fmt.Fprintf(os.Stdout, "  %-10s  %s\n", c.name, c.summary)
		}
		fmt.Fprint(os.Stdout, "\n\"confine help SUBCOMMAND\" says more.\n")
		return 0, nil
	}
	for _, c := range commands() {
		if c.name == flags.Arg(0) {
			c.help(os.Stdout)
			return 0, nil
		}
	}
	return 0, usageErrorf("run \"confine help\" for the list", "there is no subcommand %q", flags.Arg(0))
}
