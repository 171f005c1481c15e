package main

import "github.com/confine-dev/confine/rpc/proto"

// maxPlantedShown bounds what a person has to read.
const maxPlantedShown = 10

// printPlanted says what the command left that programs outside run or believe by
// themselves: the person should look at it before the next of these is started.
func printPlanted(result proto.RunResult) {
	if result.Sandbox == nil {
		return
	}
	for i, path := range result.Sandbox.Planted {
		if i == maxPlantedShown {
			printNote("and %d more", len(result.Sandbox.Planted)-i)
			break
		}
		printNote("made or changed during the run, and used by programs outside by themselves: %s", printable(path))
	}
}
