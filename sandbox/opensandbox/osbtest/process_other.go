//go:build !unix

package osbtest

import (
	"os"
	"os/exec"
)

type signal int

const (
	probe signal = iota
	terminate
	kill
)

func ownGroup(*exec.Cmd) {}

func (c *command) group(sig signal) bool {
	if sig == probe {
		return false
	}
	return c.cmd.Process.Kill() == nil
}

func signalOf(*os.ProcessState) string { return "" }

// Marked lists nothing here.
func (s *Server) Marked(string) []int { return nil }

func (s *Server) endMarked(string) {}
