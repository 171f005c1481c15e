package sandbox

import (
	"testing"
	"time"
)

func TestSettled(t *testing.T) {
	looked := time.Unix(1_000_000, 0)
	for name, test := range map[string]struct {
		changed time.Time
		want    bool
	}{
		"long ago":          {looked.Add(-time.Hour), true},
		"at the same time":  {looked, false},
		"in the same tick":  {looked.Add(-10 * time.Millisecond), false},
		"on FAT":            {looked.Add(-1900 * time.Millisecond), false},
		"by a faster clock": {looked.Add(time.Hour), false},
	} {
		if got := Settled(test.changed, looked); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
	}
}
