//go:build !unix

package opensandbox

import (
	"errors"
	"os"
)

// lock cannot tell whether somebody holds the file. Nothing is swept then, and what a
// killed confine left ends with its lifetime.
func lock(*os.File) error { return errors.ErrUnsupported }
