package main

import (
	"github.com/confine-dev/confine/rpc/proto"
	"github.com/confine-dev/confine/sandbox"
)

// printReached says which limits the command was seen to reach: its own messages
// rarely do.
func printReached(result proto.RunResult) {
	if result.Sandbox == nil {
		return
	}
	for _, text := range sandbox.ReachedLimits(result.Sandbox.Limits) {
		printNote("limit reached: %s", text)
	}
}
