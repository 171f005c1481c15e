//go:build !linux

package sandbox

import (
	"os"
	"reflect"
	"syscall"
)

// pinRoot notes what the folder is. Without O_PATH nothing holds it.
func pinRoot(real string) (*Root, error) {
	info, err := os.Lstat(real)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, &os.PathError{Op: "open", Path: real, Err: syscall.ENOTDIR}
	}
	root := &Root{Path: real}
	// Stat_t differs per system and does not exist on Windows; its Dev and Ino
	// are read by name so that one file serves them all.
	if st := reflect.Indirect(reflect.ValueOf(info.Sys())); st.IsValid() && st.Kind() == reflect.Struct {
		root.Dev, root.Ino = statField(st, "Dev"), statField(st, "Ino")
	}
	return root, nil
}

func statField(st reflect.Value, name string) uint64 {
	switch f := st.FieldByName(name); {
	case !f.IsValid():
		return 0
	case f.CanUint():
		return f.Uint()
	case f.CanInt():
		return uint64(f.Int())
	}
	return 0
}
