//go:build !linux

package main

import (
	"errors"
	"io"

	"github.com/confine-dev/confine/rpc/proto"
)

// loan lends nothing: commands have no terminals of their own on this system.
type loan struct{}

func (*loan) take() (io.Reader, error)              { return nil, errors.ErrUnsupported }
func (*loan) giveBack()                             {}
func (*loan) out() bool                             { return false }
func (*loan) watch(func(proto.TerminalSize)) func() { return func() {} }
func (*loan) size() (none proto.TerminalSize)       { return none }
