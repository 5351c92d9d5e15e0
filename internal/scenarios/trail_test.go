package scenarios

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"idemscope/internal/flow"
	"idemscope/internal/verdict"
)

// steps are what consumers report of the key, a second apart: "step" or "step@worker". The broker says of no delivery that it
// was delivered before: that proves nothing, and must change nothing (F7).
func steps(list ...string) deed {
	return func(t *testing.T, s *shop, _ flow.Flow, k flow.Key) {
		t.Helper()
		for _, one := range list {
			step, worker, named := strings.Cut(one, "@")
			if !named {
				worker = "host-1:4711"
			}
			s.reported = s.reported.Add(time.Second)
			id := strconv.FormatInt(s.reported.UnixMilli(), 10)
			err := s.redis.Client.Do(t.Context(), "XADD", "idem_trail", id, "t", k.BizType, "b", k.BizID, "s", step, "w", worker, "r", "0").Err()
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

// stepsOfAnother are those of another key of the type: its consumers report.
func stepsOfAnother(list ...string) deed {
	return func(t *testing.T, s *shop, f flow.Flow, k flow.Key) {
		t.Helper()
		steps(list...)(t, s, f, flow.Key{BizType: k.BizType, BizID: k.BizID + "-another"})
	}
}

// withTrail are cases in which consumers report their steps.
func withTrail() []scenario {
	done := record(completed, time.Minute, 55*time.Second)
	return []scenario{
		{
			field: "F2", story: "delivered again at every window, and turned away each time", flow: "told",
			left: []deed{done, steps("received", "lock", "insert", "run", "done", "unlock", "ack", "received@b", "status@b", "ack@b", "received@c", "status@c", "ack@c")},
			code: verdict.Completed, layer: flow.LayerNone, severity: verdict.OK, notes: "duplicates_suppressed",
			says: []string{"duplicates_suppressed=2", "received: 3"}, never: []string{"twice"},
		},
		{
			field: "F3", story: "the first attempt succeeded, and the retry marked itself failed", flow: "told",
			left: []deed{done, steps("received", "run", "done", "received@b", "run@b", "failed@b", "nack@b")},
			code: verdict.Completed, layer: flow.LayerNone, severity: verdict.OK, notes: "failed_retry_is_noise",
		},
		{
			field: "H-b", story: "a replay went past the guard: the record shows one run, the trail two", flow: "told",
			left: []deed{done, steps("received", "run", "done", "ack", "received@b", "run@b", "done@b", "ack@b")},
			code: verdict.RanTwice, layer: flow.LayerMySQL, severity: verdict.Critical,
			says: []string{"one after the other"},
		},
		{
			field: "F9", story: "two copies ran at once, and one commit won", flow: "told",
			left: []deed{done, steps("received", "run", "received@b", "run@b", "done", "done@b")},
			code: verdict.RanTwice, layer: flow.LayerRedis, severity: verdict.Critical,
			says: []string{"two of them overlapped"},
		},
		{
			field: "D1", story: "the first run was killed, the second one completed", flow: "told",
			left: []deed{done, steps("received", "run", "received@b", "run@b", "done@b", "ack@b")},
			code: verdict.Completed, layer: flow.LayerNone, severity: verdict.OK, notes: "run_unfinished",
			says: []string{"consumers report 1 runs that began and never reported an end"},
		},
		{
			field: "B6", story: "failed and given back: the retry is known to wait", flow: "told notices",
			left: []deed{record(failed, time.Minute, 55*time.Second), steps("received", "run", "failed", "nack")},
			code: verdict.RetryScheduled, layer: flow.LayerNone, severity: verdict.Info,
			says: []string{"waits for its next attempt"}, never: []string{"lost"},
		},
		{
			field: "G2", story: "published, its consumers were scaled to nothing, and none has received it", flow: "lines", bizID: "queued",
			left: []deed{stepsOfAnother("received", "run", "done", "ack")},
			code: verdict.Waiting, layer: flow.LayerBroker, severity: verdict.Warning,
			says: []string{"no consumer has received it yet"}, never: []string{"lost", "never seen", "could be"},
		},
	}
}
