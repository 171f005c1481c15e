//go:build !linux

package sandbox

import (
	"os"
	"reflect"
	"syscall"
)

// pinRoot notes what the folder is. Without O_PATH nothing holds it.
func pinRoot(real string) (*Root, error) {
	root, err := pinGrant(real)
	if err != nil && err != errSpecial {
		return nil, err
	}
	if err == errSpecial || root.File {
		return nil, &os.PathError{Op: "open", Path: real, Err: syscall.ENOTDIR}
	}
	return root, nil
}

// pinGrant notes what the file or folder is.
func pinGrant(real string) (*Root, error) {
	info, err := os.Lstat(real)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() && !info.Mode().IsRegular() {
		return nil, errSpecial
	}
	root := &Root{Path: real, File: !info.IsDir()}
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
