//go:build !unix

package harden

func forbidCores() error        { return nil }
func coreLimit() (int64, error) { return 0, errNotHere }
