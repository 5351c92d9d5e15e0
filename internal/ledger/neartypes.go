package ledger

import (
	"context"
	"errors"
	"time"

	"idemscope/internal/flow"
)

const (
	// maxNearTypes is under how many biz_types the same id is looked for.
	maxNearTypes = 100
	// freshTypes bounds how long a new biz_type goes unnoticed, and failedTypes
	// how long a failure to list them does.
	freshTypes  = 5 * time.Minute
	failedTypes = time.Minute
)

// nearTypes are the biz_types of a ledger, as they were listed some time ago.
type nearTypes struct {
	// turn holds the one permit to read or replace the list, as in Shard.
	turn  chan struct{}
	at    time.Time
	types []string
	gap   flow.Text
	life  time.Duration
}

func newNearTypes() *nearTypes { return &nearTypes{turn: make(chan struct{}, 1)} }

// typesNow lists the types under which an id is looked for, and says what is missing.
func (l *Ledger) typesNow(ctx context.Context) ([]string, flow.Text) {
	known := l.known
	select {
	case known.turn <- struct{}{}:
		defer func() { <-known.turn }()
	case <-ctx.Done():
		return nil, typesGap(false, ctx.Err())
	}
	if time.Since(known.at) < known.life {
		return known.types, known.gap
	}
	types, complete, err := l.Types(ctx, maxNearTypes)
	if errors.Is(err, context.Canceled) {
		return nil, typesGap(false, err) // whoever asked went away: that says nothing of the list
	}
	known.types, known.gap, known.at, known.life = types, typesGap(complete, err), time.Now(), freshTypes
	if err != nil {
		known.life = failedTypes
	}
	return known.types, known.gap
}
