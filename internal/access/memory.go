package access

import (
	"runtime"
	"time"
)

// Memory is what outlives a configuration: how often somebody failed, which forms
// were used, and the key of a process that is given none. It is bounded.
type Memory struct {
	now func() time.Time
	key []byte
	// names and addresses slow down whoever fails.
	names, addresses *throttle
	// burnt are the forms that were used, ended the sign-ins that were.
	burnt, ended *once
	// slots bound how many passwords are checked at the same time.
	slots chan struct{}
	// proven are passwords that were right a moment ago.
	proven *proven
	// quota bounds how many refusals are recorded.
	quota *quota
}

const (
	// namePause and addressPause are the longest that somebody who fails is made to
	// wait. A name's is short, because others can fail in it, too.
	namePause, addressPause = time.Minute, 15 * time.Minute
)

// NewMemory returns an empty memory. now may be nil: the time of this machine.
func NewMemory(now func() time.Time) *Memory {
	if now == nil {
		now = time.Now
	}
	return &Memory{
		now: now, key: newKey(),
		names: newThrottle(namePause, now), addresses: newThrottle(addressPause, now),
		burnt: newOnce(onceSize, now), ended: newOnce(onceSize, now),
		// A password takes a whole processor for a tenth of a second; half of them
		// stay free for everybody else.
		slots:  make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2)),
		proven: newProven(now), quota: &quota{now: now},
	}
}
