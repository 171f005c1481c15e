package protect

import (
	"testing"

	"github.com/confine-dev/confine/sandbox/ramtest"
)

func TestMain(m *testing.M) { ramtest.Main(m) }
