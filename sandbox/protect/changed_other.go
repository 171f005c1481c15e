//go:build !linux

package protect

import "os"

func changeTime(os.FileInfo) int64 { return 0 }

func ours(os.FileInfo) bool { return true }

func names(os.FileInfo) int { return 1 }
