package console

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/semaphore"

	"idemscope/internal/answer"
	"idemscope/internal/flow"
)

const (
	// maxLookups bounds how many keys all visitors together look up at once: what
	// the stores feel is the same with one visitor and with a thousand.
	maxLookups = 32
	// searchWeight is how many of them a search takes, which looks up several keys at once.
	searchWeight = 8
	// busyAfter is how long a visitor waits for others before being told so.
	busyAfter = 3 * time.Second
)

// errBusy: too many look-ups run already.
var errBusy = errors.New("too many look-ups at once")

// orderly is a desk at which nobody crowds the stores.
type orderly struct {
	Desk
	room *semaphore.Weighted
	wait time.Duration
}

func newOrderly(d Desk) orderly {
	return orderly{Desk: d, room: semaphore.NewWeighted(maxLookups), wait: busyAfter}
}

// Answer is the desk's, or errBusy.
func (o orderly) Answer(ctx context.Context, p flow.Place) (answer.Answer, error) {
	if err := o.enter(ctx, 1); err != nil {
		return answer.Answer{}, err
	}
	defer o.room.Release(1)
	return o.Desk.Answer(ctx, p)
}

// AnswerWithin is the desk's, or errBusy.
func (o orderly) AnswerWithin(ctx context.Context, p flow.Place, patience time.Duration) (answer.Answer, error) {
	if err := o.enter(ctx, 1); err != nil {
		return answer.Answer{}, err
	}
	defer o.room.Release(1)
	return o.Desk.AnswerWithin(ctx, p, patience)
}

// Search is the desk's, or errBusy.
func (o orderly) Search(ctx context.Context, query string) (answer.Result, error) {
	if err := o.enter(ctx, searchWeight); err != nil {
		return answer.Result{}, err
	}
	defer o.room.Release(searchWeight)
	return o.Desk.Search(ctx, query)
}

// enter waits for room, for a while.
func (o orderly) enter(ctx context.Context, weight int64) error {
	waiting, cancel := context.WithTimeout(ctx, o.wait)
	defer cancel()
	if o.room.Acquire(waiting, weight) == nil {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err // the visitor has left
	}
	return errBusy
}
