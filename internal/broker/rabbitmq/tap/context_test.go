package tap

import (
	"context"
	"testing"
)

// contextOf outlives t.Context, which ends before the cleanups of a test.
func contextOf(t *testing.T) (context.Context, context.CancelFunc) {
	return context.WithCancel(context.WithoutCancel(t.Context()))
}
