package verdict

import (
	"testing"
	"time"

	"idemscope/internal/broker"
	"idemscope/internal/flow"
)

// These cases notice changes of the rules that no table of a rule notices.

func TestTheYoungestEventIsToldWhicheverSourceHasIt(t *testing.T) {
	young, elder := ev(flow.Received, time.Minute), ev(flow.Published, time.Hour)
	for name, s := range map[string][]scene{
		"the first source":   scenes(tap(young), trail(elder)),
		"the last source":    scenes(tap(elder), trail(young)),
		"one source":         scenes(trace(elder, young)),
		"one that is unread": scenes(tap(young), tapError, trail(elder)),
	} {
		if got, ok := newEvidence(dossierOf(s...)).told(); !ok || got != young {
			t.Errorf("%s: %+v, %v", name, got, ok)
		}
	}
	if got, ok := newEvidence(dossierOf(tap(), trail())).told(); ok {
		t.Errorf("nobody tells, and it is %+v", got)
	}
}

func TestOneUnreadQueueLeavesTheOtherRolesKnown(t *testing.T) {
	d := dossierOf(messages(1, 1, 1))
	for i := range d.Broker.Queues {
		if q := &d.Broker.Queues[i]; q.Role == broker.RoleDeadLetter {
			failing(&q.Observation)
		}
	}
	for role, want := range map[broker.Role]bool{broker.RoleWork: true, broker.RoleRetry: true, broker.RoleDeadLetter: false} {
		if got := newEvidence(d).known(role); got != want {
			t.Errorf("%s known: %v", role, got)
		}
	}
}
