package sandbox

import "testing"

func TestLimitsString(t *testing.T) {
	for _, test := range []struct {
		limits Limits
		want   string
	}{
		{Limits{}, ""},
		{Limits{Processes: 7}, "processes 7"},
		{Limits{Processes: 1, Memory: 2, OpenFiles: 3, FileSize: 4, TempSize: 5}, "processes 1, memory 2, open files 3, file size 4, temporary files 5"},
	} {
		if got := test.limits.String(); got != test.want {
			t.Errorf("%#v is %q, want %q", test.limits, got, test.want)
		}
	}
}

// TestDefaultLimits: limits that are not asked for are bounds against what is out
// of hand. None may be what honest work meets.
func TestDefaultLimits(t *testing.T) {
	l := DefaultLimits()
	if l.Processes < 4096 || l.OpenFiles < 65536 {
		t.Errorf("%q is less than big builds and browsers need", l)
	}
	if l.Memory != 0 || l.FileSize != 0 {
		t.Errorf("%q bounds what nobody can know beforehand", l)
	}
}
