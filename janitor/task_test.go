package janitor

import (
	"testing"
	"time"
)

func TestTheDutyIsKept(t *testing.T) {
	for duty, want := range map[int]time.Duration{0: 100, 50: 100, 100: 0, 25: 300, 80: 25, 1: 9900} {
		if got := (Limits{Duty: duty}).rest(100); got != want {
			t.Errorf("duty %d: a pause of %d after work of 100, want %d", duty, got, want)
		}
	}
}
