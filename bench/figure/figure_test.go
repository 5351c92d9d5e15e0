package figure

import (
	"strings"
	"testing"
	"time"
)

func TestAFigureNamesTheGoalThatItMisses(t *testing.T) {
	for want, f := range map[string]Figure{
		"figure p99 = 12.346 ms (goal <= 50; here)":     {"p99", 12.3456, "ms", AtMost(50), "here"},
		"figure p99 = 50 ms (goal <= 50; here)":         {"p99", 50, "ms", AtMost(50), "here"},
		"figure ratio = 1.5 (goal <= 1.4; x) MISSED":    {"ratio", 1.5, "", AtMost(1.4), "x"},
		"figure n = 2000 keys (goal >= 3000; x) MISSED": {"n", 2000.4, "keys", AtLeast(3000), "x"},
		"figure n = 3000 keys (goal >= 3000; x)":        {"n", 3000, "keys", AtLeast(3000), "x"},
	} {
		if got := f.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestOneMissedFigureIsReported(t *testing.T) {
	good, bad := Figure{Value: 1, Goal: AtMost(1)}, Figure{Value: 2, Goal: AtMost(1)}
	var out strings.Builder
	if Print(&out, good, good) || !Print(&out, good, bad, good) || Print(&out) {
		t.Error("a missed goal is not reported, or one that is met is")
	}
	if n := strings.Count(out.String(), "\n"); n != 5 {
		t.Errorf("%d lines for 5 figures", n)
	}
}

func TestQuantiles(t *testing.T) {
	values := make([]time.Duration, 100)
	for i := range values {
		values[99-i] = time.Duration(i)
	}
	for part, want := range map[float64]time.Duration{0: 0, 0.5: 50, 0.99: 99, 1: 99} {
		if got := Quantile(values, part); got != want {
			t.Errorf("%v: got %d, want %d", part, got, want)
		}
	}
	if Median([]float64{3, 1, 2}) != 2 || Median([]float64(nil)) != 0 {
		t.Error("median")
	}
	if values[0] != 99 {
		t.Error("the values were put into another order")
	}
}
