package sandbox

import (
	"bytes"
	"strings"
	"testing"
)

// BenchmarkDenialScanner measures what all of stderr goes through.
func BenchmarkDenialScanner(b *testing.B) {
	prose := bytes.Repeat([]byte("warning: the variable 'x' in function main is never used [-Wunused-variable]\n  at src/module/file.c:123:45\n"), 700)[:64<<10]
	for _, bench := range []struct {
		name  string
		chunk []byte
	}{
		{"prose", prose},
		{"short-lines", bytes.Repeat([]byte("y\n"), 32<<10)},
		{"one-line", bytes.Repeat([]byte("abcdefgh"), 8<<10)},
		{"flood", []byte(strings.Repeat("touch: cannot touch '/x/y': Permission denied\n", 1400))},
	} {
		b.Run(bench.name, func(b *testing.B) {
			s := NewDenialScanner()
			b.SetBytes(int64(len(bench.chunk)))
			for b.Loop() {
				_, _ = s.Write(bench.chunk)
			}
		})
	}
}
