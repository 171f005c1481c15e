package sandbox

import "time"

// timesApart is how far apart two changes must be at least to have different times
// on any file system in use.
const timesApart = 2 * time.Second

// Settled reports whether a change of a file after it was looked at would show in its
// times: what changed just before may change again without another time.
func Settled(changed, looked time.Time) bool { return looked.Sub(changed) >= timesApart }
