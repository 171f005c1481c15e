package sandbox

import (
	"errors"
	"io/fs"
	"os"
)

// SystemHost is the AdviceHost that looks at this host, by lstat only.
func SystemHost(f Forbidden) AdviceHost { return systemHost{f} }

type systemHost struct{ forbidden Forbidden }

func (systemHost) Kind(path string) FileKind {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return FileMissing
	case err != nil:
		return FileOther
	case info.IsDir():
		return FileFolder
	case info.Mode().IsRegular():
		return FilePlain
	case info.Mode()&fs.ModeSymlink != 0:
		return FileLink
	}
	return FileOther
}

func (h systemHost) Grantable(path string) bool {
	kind := h.Kind(path)
	if kind != FilePlain && kind != FileFolder {
		return false
	}
	real, missing, err := settle(path)
	// A path that is another one by now would open what nobody was refused.
	return err == nil && missing == "" && real == path && h.forbidden.grantReason(real, kind == FilePlain) == ""
}
