package verdict

import (
	"slices"
	"strings"
	"testing"
	"time"

	"idemscope/internal/broker"
	"idemscope/internal/dossier"
	"idemscope/internal/flow"
	"idemscope/internal/ledger"
)

// TestNotesAreExactlyThese: a note that should not be there misleads as much as
// one that is missing.
func TestNotesAreExactlyThese(t *testing.T) {
	unacked := func(d *dossier.Dossier) { d.Broker.Queues[0].Unacked = 1; d.Broker.Queues[0].Role = broker.RoleWork }
	tests := map[string]struct {
		scene []scene
		notes string
	}{
		"plain":                        {scenes(row(flow.Completed, old)), ""},
		"completed with lock":          {scenes(row(flow.Completed, old), lock(3*time.Second)), "lock_left"},
		"completed, marker there":      {scenes(row(flow.Completed, old), marker(time.Hour)), ""},
		"completed and failed":         {scenes(row(flow.Completed, old), row(flow.Failed, old)), "more_records"},
		"failed twice":                 {scenes(row(flow.Failed, old), row(flow.Failed, old), messages(1, 0, 0)), ""},
		"ran as long as the lock":      {scenes(row(flow.Completed, old), ranFor(15*time.Second)), "unprotected_for"},
		"ran a little less":            {scenes(row(flow.Completed, old), ranFor(15*time.Second-1)), ""},
		"run time not known":           {scenes(row(flow.Completed, old), rowLike(func(r *ledger.Row) { r.RunTime = time.Hour })), ""},
		"ran long, renewed":            {scenes(row(flow.Completed, old), ranFor(time.Hour), renewed), ""},
		"ran long, no lock":            {scenes(row(flow.Completed, old), ranFor(time.Hour), noLock), ""},
		"ran long, TTL undeclared":     {scenes(row(flow.Completed, old), ranFor(time.Hour), lockUndeclared), ""},
		"failed after a long run":      {scenes(row(flow.Failed, old), ranFor(time.Hour), messages(1, 0, 0)), ""},
		"running with lock":            {scenes(row(flow.Processing, 3*time.Second), lock(12*time.Second)), ""},
		"running, flow without lock":   {scenes(row(flow.Processing, fresh), noLock), ""},
		"running, lock unread":         {scenes(row(flow.Processing, fresh), lockError), "lock_unread"},
		"presence, running":            {scenes(presence, lock(5*time.Second)), ""},
		"stuck":                        {scenes(row(flow.Processing, old)), ""},
		"stuck, others unacked":        {scenes(row(flow.Processing, old), messages(1, 0, 0), unacked), "unacked_could_be_it"},
		"stuck, none unacked":          {scenes(row(flow.Processing, old), messages(1, 0, 0)), ""},
		"running, others unacked":      {scenes(row(flow.Processing, fresh), lock(14*time.Second), renewed, messages(1, 0, 0), unacked), "renewed"},
		"dead letters are not unacked": {scenes(row(flow.Processing, old), messages(0, 0, 1), func(d *dossier.Dossier) { d.Broker.Queues = []broker.Queue{{Role: broker.RoleDeadLetter, Unacked: 2}} }), ""},
		"waiting, lock absent":         {scenes(messages(1, 0, 0)), ""},
		"failed, lock held":            {scenes(row(flow.Failed, old), lock(9*time.Second), messages(1, 0, 0)), "lock_held"},
		"completed, never failed":      {scenes(row(flow.Completed, old), lock(9*time.Second)), "lock_left"},
		"TTL as declared":              {scenes(row(flow.Processing, time.Second), lock(15*time.Second)), ""},
		"TTL above declared":           {scenes(row(flow.Processing, time.Second), lock(16*time.Second)), "lock_ttl_implausible"},
		"TTL not declared":             {scenes(row(flow.Processing, time.Second), lock(time.Hour), lockUndeclared), ""},
		"no TTL":                       {scenes(row(flow.Processing, time.Second), lock(0)), "lock_without_ttl"},
		"shared":                       {scenes(row(flow.Processing, time.Second), lock(9*time.Second), lockShared), "lock_ambiguous"},
		"near misses alone":            {scenes(row(flow.Completed, old), rowLike(near)), ""},
		"replica":                      {scenes(row(flow.Completed, old), replica), "replica"},
		"broker and marker down":       {scenes(row(flow.Completed, old), markerError, brokerError), "marker_unread broker_unread"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var codes []string
			for _, n := range Judge(dossierOf(tt.scene...)).Notes {
				codes = append(codes, n.Code)
			}
			if got := strings.Join(codes, " "); got != tt.notes {
				t.Errorf("got %q, want %q", got, tt.notes)
			}
		})
	}
}

func TestFactsInWords(t *testing.T) {
	statusOf := func(s string) scene { return rowLike(func(r *ledger.Row) { r.Status = s }) }
	tests := map[string]struct {
		scene []scene
		facts []string
	}{
		"nothing": {nil, []string{"", "lock: none", "marker: none", "record: none"}},
		"all there": {scenes(row(flow.Processing, 2*time.Minute), statusOf("1"), lock(9*time.Second), marker(time.Hour), messages(0, 0, 0)), []string{
			"queue q: 0 ready, 0 unacked, 1 consumers", "lock: there, expires in 9 s", "marker: there, expires in 1 h", "record: processing (status 1), last sign of life 2 min ago"}},
		"the word itself": {scenes(row(flow.Failed, 0), statusOf("failed"), noLock, noMarker, noBroker), []string{"record: failed, last sign of life 0 ms ago"}},
		"no status":       {scenes(row(flow.Unmapped, old), statusOf(""), noLock, noMarker, noBroker), []string{"record: unmapped status, last sign of life 2 h ago"}},
		"in the future":   {scenes(row(flow.Processing, -old), statusOf("1"), noLock, noMarker, noBroker), []string{"record: processing (status 1)"}},
		"age not known":   {scenes(row(flow.Completed, 0), statusOf("2"), rowLike(ageless), noLock, noMarker, noBroker), []string{"record: completed (status 2)"}},
		"another id":      {scenes(row(flow.Completed, old), statusOf("2"), rowLike(near), noLock, noMarker, noBroker), []string{"record of another id: completed (status 2), last sign of life 2 h ago", "asked 0x6f726465725f70616964 / 0x4f52442d31, stored 0x6f726465725f70616964 / 0x6f72642d31"}},
		"record unread":   {scenes(recordError, noLock, noMarker, noBroker), []string{"record: no answer within 1 s"}},
		"redis unread":    {scenes(lockError, marker(0), noBroker), []string{"lock: no answer within 1 s", "marker: there, without TTL", "record: none"}},
		"foreign":         {scenes(lock(9*time.Second), lockForeign, noMarker, noBroker), []string{"lock: there, but it is a hash", "record: none"}},
		"broker unread":   {scenes(noLock, noMarker, brokerError), []string{"queues: no answer within 1 s", "record: none"}},
		"one queue missing": {scenes(noLock, noMarker, messages(1, 0, 0), func(d *dossier.Dossier) {
			d.Broker.Queues = d.Broker.Queues[:1]
			d.Broker.Queues[0].State = flow.Absent
		}), []string{"queue q: does not exist", "record: none"}},
		"queues known beside an error": {scenes(noLock, noMarker, messages(0, 0, 0), brokerError, func(d *dossier.Dossier) { d.Broker.Queues = d.Broker.Queues[:1] }), []string{"queue q: 0 ready, 0 unacked, 1 consumers", "record: none"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var facts []string
			for _, f := range Judge(dossierOf(tt.scene...)).Facts {
				// Three queues of a scene read alike.
				first, _, _ := strings.Cut(f.Text.EN, "; ")
				facts = append(facts, first)
			}
			if !slices.Equal(facts, tt.facts) {
				t.Errorf("got %q, want %q", facts, tt.facts)
			}
		})
	}
}

// TestSentences: what decides between two wordings of one verdict.
func TestSentences(t *testing.T) {
	never := func(d *dossier.Dossier) { d.Flow.Rerun = flow.RerunNever }
	retry := func(d *dossier.Dossier) { d.Flow.OnProcessing = flow.Retry }
	noConsumer := func(d *dossier.Dossier) {
		d.Broker.Queues = []broker.Queue{{Observation: flow.Observation{State: flow.Found}, Name: "order.paid", Role: broker.RoleWork, Ready: 2}}
	}
	idleRetry := func(d *dossier.Dossier) {
		d.Broker.Queues = []broker.Queue{
			{Observation: flow.Observation{State: flow.Found}, Name: "order.paid", Role: broker.RoleWork, Ready: 2, Consumers: 1},
			{Observation: flow.Observation{State: flow.Found}, Name: "retry", Role: broker.RoleRetry},
			{Observation: flow.Observation{State: flow.Error}, Name: "order.paid.2", Role: broker.RoleWork},
		}
	}
	tests := map[string]struct {
		scene []scene
		says  string
	}{
		"never rerun":          {scenes(row(flow.Processing, old), never), "must not run twice"},
		"rerun by hand":        {scenes(row(flow.Processing, old)), "set the record back to failed"},
		"refuse":               {scenes(row(flow.Processing, old)), "refused by the unique key, acked, and lost"},
		"retry":                {scenes(row(flow.Processing, old), retry), "comes again and again"},
		"resume":               {scenes(row(flow.Processing, old), resume), "takes the record over"},
		"marker stands first":  {scenes(row(flow.Processing, old), marker(time.Hour)), "until then it turns away every delivery"},
		"marker in the way":    {scenes(row(flow.Processing, old), marker(time.Hour)), "Clear the marker as well"},
		"endless marker":       {scenes(row(flow.Failed, old), marker(0)), "for ever"},
		"hour that came twice": {scenes(row(flow.Processing, old), rowLike(ambiguous)), "happened twice"},
		"future":               {scenes(row(flow.Completed, -old)), "lies 2 h in the database's future"},
		"empty status":         {scenes(row(flow.Unmapped, old), rowLike(noStatus)), "status is empty"},
		"unmapped status":      {scenes(row(flow.Unmapped, old)), `status "?" is not in the configuration`},
		"zero creation":        {scenes(row(flow.Processing, fresh), rowLike(func(r *ledger.Row) { r.Created.State = ledger.StampZero })), "zero date"},
		"too long":             {scenes(tooLong), "longer than the 32 characters"},
		"completed since":      {scenes(row(flow.Completed, old)), "completed 2 h ago"},
		"completed, no time":   {scenes(row(flow.Completed, 0), rowLike(ageless)), "ran once and is completed"},
		"nobody consumes":      {scenes(messages(2, 0, 0), noConsumer), "queue order.paid has no consumer"},
		"somebody consumes":    {scenes(messages(2, 0, 0), idleRetry), "delivered in its turn"},
		"no queue":             {scenes(row(flow.Failed, old), noBroker), "names no queue"},
		"counts":               {scenes(row(flow.Failed, old), messages(3, 2, 1)), "work 3, retry 2, dead letter 1"},
		"not started":          {scenes(row(flow.NotStarted, old)), "Not started"},
		"broker not asked":     {scenes(noBroker), "broker was not asked"},
		"outlived by":          {scenes(row(flow.Completed, old), ranFor(145*time.Second)), "2 min 10 s longer than the lock's TTL"},
		"lock expires":         {scenes(row(flow.Processing, 3*time.Second), lock(12*time.Second)), "The lock expires in 12 s"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			v := Judge(dossierOf(tt.scene...))
			all := v.Sentence.EN
			for _, text := range slices.Concat(v.Next, v.Advice) {
				all += "\n" + text.EN
			}
			for _, n := range v.Notes {
				all += "\n" + n.Text.EN
			}
			if !strings.Contains(all, tt.says) {
				t.Errorf("does not say %q:\n%s", tt.says, all)
			}
		})
	}
	if v := Judge(dossierOf(messages(2, 0, 0), noConsumer)); v.Severity != Warning {
		t.Errorf("messages that nobody consumes are %s", v.Severity)
	}
	if v := Judge(dossierOf(messages(2, 0, 0), idleRetry)); v.Severity != Info {
		t.Errorf("messages that wait in turn are %s", v.Severity)
	}
	if v := Judge(dossierOf(row(flow.Processing, fresh))); len(v.Next) != 0 {
		t.Errorf("without a lock something is said of its end: %v", v.Next)
	}
}

// TestBorders: what happens exactly at a limit.
func TestBorders(t *testing.T) {
	check(t, map[string]expectation{
		"lock as old as a run may take to show": {Acquiring, flow.LayerNone, scenes(lock(10 * time.Second))},
		"a moment older":                        {Unknown, flow.LayerRedis, scenes(lock(10*time.Second - 1))},
		"marker as old as that":                 {Acquiring, flow.LayerNone, scenes(marker(24*time.Hour - 5*time.Second))},
		"marker as old as that, messages":       {Acquiring, flow.LayerNone, scenes(marker(24*time.Hour-5*time.Second), messages(1, 0, 0))},
		"marker a moment older, messages":       {Stuck, flow.LayerRedis, scenes(marker(24*time.Hour-5*time.Second-1), messages(1, 0, 0))},
		"a young lock, an old marker":           {Acquiring, flow.LayerNone, scenes(lock(14*time.Second), marker(time.Hour))},
		"one waits, one for a retry":            {MaybeWaiting, flow.LayerBroker, scenes(messages(1, 1, 0))},
		"one waits, one is dead":                {MaybeWaiting, flow.LayerBroker, scenes(messages(1, 0, 1))},
		"marker as old as the totals":           {Unknown, flow.LayerBroker, scenes(marker(24*time.Hour - 10*time.Second))},
		"marker a moment older than they":       {LostSuspected, flow.LayerRedis, scenes(marker(24*time.Hour - 10*time.Second - 1))},
		"failed as long ago as the totals":      {Unknown, flow.LayerBroker, scenes(row(flow.Failed, 10*time.Second))},
		"failed a moment before":                {LostSuspected, flow.LayerBroker, scenes(row(flow.Failed, 10*time.Second+1))},
		"lock younger by just the margin":       {Running, flow.LayerNone, scenes(row(flow.Processing, 5*time.Second), lock(12*time.Second))},
		"younger by more":                       {MayHaveRunTwice, flow.LayerRedis, scenes(row(flow.Processing, 5*time.Second+1), lock(12*time.Second))},
		"fully fresh lock, old record":          {MayHaveRunTwice, flow.LayerRedis, scenes(row(flow.Processing, fresh), lock(15*time.Second))},
		"just within the tolerance of clocks":   {Running, flow.LayerNone, scenes(row(flow.Processing, -2*time.Second))},
		"just beyond":                           {ClockSkew, flow.LayerMySQL, scenes(row(flow.Processing, -2*time.Second-1))},
		"lock and marker young, record absent":  {Acquiring, flow.LayerNone, scenes(lock(14*time.Second), marker(24*time.Hour-time.Second))},
		"old lock, young marker":                {Acquiring, flow.LayerNone, scenes(lock(5*time.Second), marker(24*time.Hour-time.Second))},
		"young marker, but the record failed":   {Stuck, flow.LayerRedis, scenes(row(flow.Failed, old), marker(24*time.Hour-time.Second))},
		"presence, lock without TTL":            {Stuck, flow.LayerRedis, scenes(presence, lock(0))},
		"presence, lock of somebody":            {Unknown, flow.LayerRedis, scenes(presence, lock(5*time.Second), lockShared)},
		"a completed and an unmapped row":       {Completed, flow.LayerNone, scenes(row(flow.Completed, old), row(flow.Unmapped, old))},
		"failed on a replica, marker there":     {Unknown, flow.LayerMySQL, scenes(row(flow.Failed, old), marker(time.Hour), replica)},
		"processing, no time, lock held":        {Running, flow.LayerNone, scenes(row(flow.Processing, 0), rowLike(ageless), lock(9*time.Second))},
		"processing, no time, lock without TTL": {Unknown, flow.LayerMySQL, scenes(row(flow.Processing, 0), rowLike(ageless), lock(0))},
		"processing, zero date, no lock":        {Unreadable, flow.LayerMySQL, scenes(row(flow.Processing, 0), rowLike(zeroDate))},
		"processing, ambiguous without an age":  {ClockSkew, flow.LayerMySQL, scenes(row(flow.Processing, 0), rowLike(func(r *ledger.Row) { r.AgeKnown = false; r.Updated.State = ledger.StampAmbiguous }))},
		"a marker that is a hash":               {Unknown, flow.LayerRedis, scenes(marker(time.Hour), func(d *dossier.Dossier) { d.Marker.Foreign = true })},
		"marker alone, lock held, messages":     {Unknown, flow.LayerRedis, scenes(marker(time.Hour), lock(5*time.Second), messages(1, 0, 0))},
		"nothing, one queue could not be read":  {Unknown, flow.LayerBroker, scenes(messages(0, 0, 0))},
		"not started, lock without TTL":         {Stuck, flow.LayerRedis, scenes(row(flow.NotStarted, old), lock(0))},
	})
}
