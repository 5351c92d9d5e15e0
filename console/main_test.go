package console

import (
	"testing"

	"idemscope/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }
