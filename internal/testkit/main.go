package testkit

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// Main runs the tests of a package, stops every private server that they started, verifies that no goroutine leaked,
// and exits. Use it as
//
//	func TestMain(m *testing.M) { testkit.Main(m) }
func Main(m *testing.M) {
	os.Exit(shared.run(m.Run))
}

// run returns the exit code of tests, or 1 when they passed and left something behind.
func (k *kit) run(tests func() int) int {
	code := tests()
	if err := k.stop(); err != nil {
		fmt.Fprintln(os.Stderr, "testkit:", err)
		code = max(code, 1)
	}
	if code != 0 {
		return code
	}
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, "testkit:", err)
		return 1
	}
	return 0
}

// Eventually polls cond every 10 ms until it is true, or fails the test after timeout with msg, which is a format
// for args. Call it from the goroutine of the test.
func Eventually(t testing.TB, timeout time.Duration, cond func() bool, msg string, args ...any) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(timeout)
	for !cond() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("not within %s: %s", timeout, fmt.Sprintf(msg, args...))
		}
	}
}
