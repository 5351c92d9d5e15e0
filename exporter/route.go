package exporter

import (
	"time"

	"idemscope/internal/flow"
)

// route is what the metrics of one biz_type of one ledger need to know of its flow.
type route struct {
	flow       string
	staleAfter time.Duration
	// lockTTL is 0 when the flow has no lock, or one that a watchdog renews: no
	// run can outlive such a lock.
	lockTTL time.Duration
}

// routes finds the flow of a biz_type in one ledger.
type routes struct {
	named map[string]*route
	rest  *route // nil when no flow takes the rest
}

func newRoutes(ledger string, flows []flow.Flow) routes {
	r := routes{named: map[string]*route{}}
	for _, f := range flows {
		if f.Ledger != ledger {
			continue
		}
		to := &route{flow: f.Name, staleAfter: f.StaleAfter, lockTTL: lockTTL(f)}
		for _, bizType := range f.BizTypes {
			r.named[bizType] = to
		}
		if f.Rest {
			r.rest = to
		}
	}
	return r
}

// of returns nil for a biz_type that no flow takes.
func (r routes) of(bizType string) *route {
	if to, ok := r.named[bizType]; ok {
		return to
	}
	return r.rest
}

func lockTTL(f flow.Flow) time.Duration {
	if f.Lock == nil || f.Lock.Renewed {
		return 0
	}
	return f.Lock.TTL
}
