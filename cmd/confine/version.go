package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/confine-dev/confine/rpc/proto"
)

var versionCommand = command{
	name:     "version",
	synopsis: "[--json]",
	summary:  "Print which confine this is.",
	details: `
--json prints one object: version, commit (with "+dirty" after changes; empty if
it is not known), go, os, arch, protocolVersion.`,
	run:    runVersion,
	failed: 1,
}

// version is set by release builds: -ldflags "-X main.version=v1.2.3".
var version string

// buildFacts is what `confine version --json` prints. The field names are
// stable.
type buildFacts struct {
	Version         string `json:"version"`
	Commit          string `json:"commit"`
	Go              string `json:"go"`
	OS              string `json:"os"`
	Arch            string `json:"arch"`
	ProtocolVersion int    `json:"protocolVersion"`
}

func runVersion(args []string) (int, error) {
	flags := newFlags("version")
	asJSON := flags.Bool("json", false, "")
	if err := parseOnlyFlags(flags, args); err != nil {
		return 0, err
	}
	facts := readBuildFacts()
	if *asJSON {
		return 0, printJSON(facts)
	}
	fmt.Fprintf(os.Stdout, "confine %s\n", facts)
	return 0, nil
}

// String is the version in one line.
func (b buildFacts) String() string {
	commit := ""
	if b.Commit != "" {
		commit = ", commit " + b.Commit
	}
	return fmt.Sprintf("%s (%s/%s, %s%s, protocol %d)", b.Version, b.OS, b.Arch, b.Go, commit, b.ProtocolVersion)
}

// readBuildFacts asks the linker's variable first, then what the go command
// recorded.
func readBuildFacts() buildFacts {
	facts := buildFacts{
		Version:         version,
		Go:              runtime.Version(),
		OS:              runtime.GOOS,
		Arch:            runtime.GOARCH,
		ProtocolVersion: proto.ProtocolVersion,
	}
	info, ok := debug.ReadBuildInfo()
	if ok && facts.Version == "" && info.Main.Version != "(devel)" {
		facts.Version = info.Main.Version
	}
	if facts.Version == "" {
		facts.Version = "devel"
	}
	if !ok {
		return facts
	}
	dirty := false
	for _, setting := range info.Settings {
		switch setting.Key {
		case "vcs.revision":
			facts.Commit = setting.Value
		case "vcs.modified":
			dirty = setting.Value == "true"
		}
	}
	if dirty && facts.Commit != "" {
		facts.Commit += "+dirty"
	}
	return facts
}
