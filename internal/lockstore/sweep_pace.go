package lockstore

import (
	"context"
	"time"
)

const (
	// pagesPerSecond is how many pages share the budget of a second, within the
	// bounds of a page: small pages hold the server up for a short time each.
	pagesPerSecond   = 20
	minPage, maxPage = 10, 1000
	// A page counts as slow when its round trip takes slowTimes the usual and at
	// least slowFloor more: below that it is noise.
	slowTimes = 3
	slowFloor = 3 * time.Millisecond
	// maxBrake is how often the pause between two pages may double.
	maxBrake = 6
)

// pace spreads the pages of a sweep over time.
type pace struct {
	perKey time.Duration
	// count is how many keys one page walks.
	count int64
	// brake is how often the pauses are doubled at the moment.
	brake int
	// begun is when the last page began, next when the next one may.
	begun, next time.Time
}

func newPace(keysPerSecond int) pace {
	return pace{
		perKey: time.Second / time.Duration(keysPerSecond),
		count:  int64(min(max(keysPerSecond/pagesPerSecond, minPage), maxPage)),
	}
}

// wait returns when the next page may begin, or with the error of ctx.
func (p *pace) wait(ctx context.Context) error {
	timer := time.NewTimer(time.Until(p.next))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
	}
	p.begun = time.Now()
	p.next = p.begun.Add(time.Duration(p.count) * p.perKey << p.brake) // in case the page fails
	return ctx.Err()
}

// spent notes how many keys a page walked and how long the server took. What is
// usual falls fast and rises slowly, so that a server that has become slow for
// good is taken as it is in the end.
func (p *pace) spent(keys int64, took time.Duration, usual *time.Duration) {
	switch {
	case *usual == 0:
		*usual = took
	case took > slowTimes**usual && took > *usual+slowFloor:
		p.brake = min(p.brake+1, maxBrake)
		*usual += (took - *usual) / 64
	case took < *usual:
		p.brake = max(p.brake-1, 0)
		*usual += (took - *usual) / 4
	default:
		p.brake = max(p.brake-1, 0)
		*usual += (took - *usual) / 16
	}
	p.next = p.begun.Add(time.Duration(keys) * p.perKey << p.brake)
}
