package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/confine-dev/confine/rpc/proto"
)

var explainCommand = command{
	name:     "explain",
	synopsis: "[flags] ('COMMAND' | -- COMMAND | -- PROGRAM ARGUMENT… | --command-file FILE)",
	summary:  "Say what the rules make of a command and what a question would show, without running it.",
	details: `
The flags are those of "confine run". With --json one object is printed: auto (it
runs without a question under every approval policy), now (runs, asks or refused,
as the settings are), decision (allow, ask or deny, if a rule has one), rule, why,
prompt (the text that a person would be shown).

Exit status: 0; 125 if nothing can be said, 2 for a mistake in these arguments.`,
	run:    runExplain,
	failed: exitNotRun,
}

func runExplain(args []string) (_ int, err error) {
	options, err := parseRunOptions("explain", args)
	if err != nil {
		return 0, err
	}
	w, err := newWiring(wiringOptions{named: options.named, brief: true})
	if err != nil {
		return 0, err
	}
	defer func() {
		if closing := w.close(); err == nil {
			err = closing
		}
	}()
	c, err := connect(context.Background(), w.server, clientOptions{folder: options.workspace})
	if err != nil {
		return 0, err
	}
	defer c.close()
	var e proto.Explanation
	if err := c.conn.Call(context.Background(), proto.MethodExplain, options.params, &e); err != nil {
		return 0, err
	}
	if options.json {
		return 0, printJSON(e)
	}
	return 0, printExplanation(os.Stdout, e)
}

func printExplanation(w io.Writer, e proto.Explanation) error {
	now := map[proto.Outlook]string{
		proto.OutlookRuns:    "runs without a question",
		proto.OutlookAsks:    "somebody is asked first",
		proto.OutlookRefused: "is refused without a question",
	}[e.Now]
	decision := string(e.Decision)
	if decision == "" {
		decision = "none"
	}
	var b strings.Builder
	printRow(&b, "%-9s %s", "now", now)
	printRow(&b, "%-9s %s: %s", "rules", decision, printable(e.Why))
	fmt.Fprintf(&b, "question\n")
	for line := range strings.SplitSeq(e.Prompt, "\n") {
		fmt.Fprintf(&b, "  %s\n", printable(line))
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("writing the explanation: %w", err)
	}
	return nil
}
