package access

import (
	"fmt"
	"sync"
	"time"
)

const (
	// freeTries is how often somebody may fail before he has to wait.
	freeTries = 5
	// throttled is how many names or addresses are remembered.
	throttled = 10_000
	// forgiven is how long after the last failure all is forgotten.
	forgiven = time.Hour
)

// ErrThrottled: too many attempts failed.
type ErrThrottled struct {
	// After is how long to wait.
	After time.Duration
}

// Error says how long to wait.
func (e ErrThrottled) Error() string {
	return fmt.Sprintf("too many failed sign-ins; wait %s", e.After.Round(time.Second))
}

// throttle makes whoever fails wait, each time twice as long.
type throttle struct {
	longest time.Duration
	now     func() time.Time

	mu    sync.Mutex
	tries map[string]tries
}

// tries are those that failed, and those that are not decided yet.
type tries struct {
	failed int
	last   time.Time
	until  time.Time
}

func newThrottle(longest time.Duration, now func() time.Time) *throttle {
	return &throttle{longest: longest, now: now, tries: map[string]tries{}}
}

// begin returns how long who has to wait. Without a wait, it counts an attempt as
// failed until it is known not to be, so that many at once do not slip through.
func (t *throttle) begin(who string) (wait time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	one, known := t.tries[who]
	if wait = one.until.Sub(now); wait > 0 {
		return wait
	}
	if !known && len(t.tries) >= throttled {
		t.makeRoom(now)
	}
	if now.Sub(one.last) > forgiven {
		one = tries{}
	}
	one.failed++
	one.last = now
	if over := one.failed - freeTries; over >= 0 {
		pause := time.Second << min(over, 20)
		one.until = now.Add(min(pause, t.longest))
	}
	t.tries[who] = one
	return 0
}

// right takes back what begin counted; all forgets the failures before it as well.
func (t *throttle) right(who string, all bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	one, known := t.tries[who]
	switch {
	case !known:
	case all || one.failed <= 1:
		delete(t.tries, who)
	default:
		one.failed, one.until = one.failed-1, time.Time{}
		t.tries[who] = one
	}
}

// makeRoom drops what is forgiven; if nothing is, the one that failed longest ago.
func (t *throttle) makeRoom(now time.Time) {
	oldest, found := "", false
	for who, one := range t.tries {
		if now.Sub(one.last) > forgiven {
			delete(t.tries, who)
			continue
		}
		if !found || one.last.Before(t.tries[oldest].last) {
			oldest, found = who, true
		}
	}
	if found && len(t.tries) >= throttled {
		delete(t.tries, oldest)
	}
}
