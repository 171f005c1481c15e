package local

import (
	"path/filepath"
	"time"
)

// sweep ends and removes what servers left whose guardian died as well: their
// folders are not locked any more.
func sweep(state string) {
	defer sweepCovers(state)
	for dir, lock := range deadServers(state) {
		endRuns(filepath.Base(dir), time.Second)
		removeTree(dir)
		lock.Close()
	}
}
