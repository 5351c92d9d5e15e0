package doctor

import (
	"context"
	"strings"
	"testing"
	"time"

	"idemscope/internal/broker"
	"idemscope/internal/flow"
	"idemscope/internal/lockstore"
	"idemscope/internal/testkit"
)

// flowCodes judges the first of the flows and lists what fails, with a question mark what cannot be told.
func flowCodes(t testing.TB, counters []lockstore.TypeCounters, flows ...flow.Flow) string {
	t.Helper()
	d := &Doctor{opts: Options{Flows: flows}}
	f := facts{counters: counterFacts{source: "main", read: told[lockstore.Counters]{is: lockstore.Counters{Types: counters}}}}
	for _, one := range flows {
		if one.Queue != nil {
			q := queueFacts{NamedQueue: broker.NamedQueue{Name: one.Queue.Name}, is: told[broker.QueueSetUp]{is: broker.QueueSetUp{State: flow.Found}}}
			f.brokers = append(f.brokers, brokerFacts{name: one.Queue.Broker, queues: []queueFacts{q}})
		}
	}
	d.opts.Retention = func(ledger string) (time.Duration, bool) { return 7 * 24 * time.Hour, ledger == "kept" }
	f.flows = d.joinFlows(f)
	var r Report
	apply(&r, Subject{KindFlow, flows[0].Name}, flowRules, f.flows[0])
	var got []string
	for _, p := range r.Problems {
		got = append(got, p.Code)
		if p.Seen.ZH == "" || strings.Contains(p.Seen.EN+p.Seen.ZH, "%!") {
			t.Errorf("%s: %+v", p.Code, p.Seen)
		}
	}
	for _, u := range r.Unsure {
		got = append(got, "?"+u.Code)
	}
	return strings.Join(got, " ")
}

// soundFlow has nothing to report.
func soundFlow(t testing.TB, change func(*flow.Flow)) flow.Flow {
	t.Helper()
	f := flow.Flow{
		Name: "payments", BizTypes: []string{"pay"}, Ledger: "orders", StaleAfter: 5 * time.Minute, OnProcessing: flow.Retry, Rerun: flow.RerunManual,
		Lock: redisKey(t, "idem_lock:{biz_type}:{biz_id}", 15*time.Second), Marker: redisKey(t, "idempotent:{biz_type}:{biz_id}", 24*time.Hour),
		Queue: &flow.Queue{Broker: "rabbit", Name: "order.paid"},
	}
	if change != nil {
		change(&f)
	}
	return f
}

func TestTheLockIsComparedWithTheRunsThatConsumersCounted(t *testing.T) {
	// mixed has n quick runs and some of the given length.
	mixed := func(n, slow uint64, each time.Duration) []lockstore.TypeCounters {
		c, s := counted("pay", n, 20*time.Millisecond), counted("pay", slow, each)
		for i := range c.Buckets {
			c.Buckets[i] += s.Buckets[i]
		}
		c.MsSum += s.MsSum
		return []lockstore.TypeCounters{c}
	}
	for name, c := range map[string]struct {
		counters []lockstore.TypeCounters
		change   func(*flow.Flow)
		want     string
	}{
		"no run yet":                       {nil, nil, ""},
		"short runs":                       {mixed(1000, 0, 0), nil, ""},
		"one in a thousand is slow":        {mixed(999, 1, 40*time.Second), nil, ""},
		"two in a hundred are slow":        {mixed(98, 2, 18*time.Second), nil, "lock_below_p99"},
		"close to the lock":                {mixed(98, 2, 14*time.Second), nil, ""}, // the bucket ends at the TTL
		"the bucket spans the lock":        {mixed(98, 2, 14*time.Second), func(f *flow.Flow) { f.Lock.TTL = 12 * time.Second }, "lock_margin_small"},
		"ten times the mean":               {mixed(100, 0, 0), func(f *flow.Flow) { f.Lock.TTL = 150 * time.Millisecond }, "lock_margin_small"},
		"beyond every bucket":              {mixed(98, 2, time.Hour), nil, "lock_below_p99 stale_before_p99 ?ack_timeout_short"},
		"a few slow runs":                  {mixed(0, 3, 18*time.Second), nil, "lock_below_p99"},
		"a watchdog renews it":             {mixed(98, 2, time.Minute), func(f *flow.Flow) { f.Lock.Renewed = true }, ""},
		"another flow's runs":              {[]lockstore.TypeCounters{counted("refund", 100, time.Minute)}, nil, ""},
		"stale before they end":            {mixed(98, 2, 50*time.Second), func(f *flow.Flow) { f.StaleAfter = 20 * time.Second }, "lock_below_p99 stale_before_p99"},
		"the ack timeout is shorter":       {mixed(999, 1, 50*time.Second), func(f *flow.Flow) { f.Queue.AckTimeout = 20 * time.Second }, "ack_timeout_short"},
		"the ack timeout is long enough":   {mixed(999, 1, 50*time.Second), func(f *flow.Flow) { f.Queue.AckTimeout = 2 * time.Minute }, ""},
		"longer than the counters measure": {mixed(9999, 1, time.Hour), nil, "?ack_timeout_short"},
		"one type is, another is not": {append(mixed(9999, 1, time.Hour), counted("refund", 100, 20*time.Millisecond)),
			func(f *flow.Flow) { f.BizTypes = []string{"pay", "refund"} }, "?ack_timeout_short"},
	} {
		if got := flowCodes(t, c.counters, soundFlow(t, c.change)); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestFlowsThatContradictThemselvesAreReported(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*flow.Flow)
		want   string
	}{
		"sound":                 {nil, ""},
		"no TTL declared":       {func(f *flow.Flow) { f.Lock.TTL = 0 }, "lock_ttl_undeclared"},
		"a lock for a day":      {func(f *flow.Flow) { f.Lock.TTL, f.StaleAfter = 24*time.Hour, 48*time.Hour }, "lock_ttl_long"},
		"stale before the lock": {func(f *flow.Flow) { f.StaleAfter = 10 * time.Second }, "stale_before_lock"},
		"one key for both":      {func(f *flow.Flow) { f.Marker = redisKey(t, "idem_lock:{biz_type}:{biz_id}", time.Hour) }, "lock_is_marker"},
		"one key, other servers": {func(f *flow.Flow) {
			f.Marker = redisKey(t, "idem_lock:{biz_type}:{biz_id}", time.Hour)
			f.Marker.Redis = "b"
		}, ""},
		"refuses what is at work":   {func(f *flow.Flow) { f.OnProcessing = flow.Refuse }, "refuse_loses"},
		"resumes what must not":     {func(f *flow.Flow) { f.OnProcessing, f.Rerun = flow.Resume, flow.RerunNever }, "resume_against_never"},
		"resumes what may":          {func(f *flow.Flow) { f.OnProcessing = flow.Resume }, ""},
		"kept long enough":          {func(f *flow.Flow) { f.Ledger = "kept" }, ""},
		"cleaned before the marker": {func(f *flow.Flow) { f.Ledger, f.Marker.TTL = "kept", 30*24*time.Hour }, "marker_outlives_record"},
		"two types, one key": {func(f *flow.Flow) {
			f.BizTypes = []string{"pay", "refund"}
			f.Lock = redisKey(t, "lock:{biz_id}", time.Minute)
		}, "keys_shared"},
		"any type, one key":      {func(f *flow.Flow) { f.BizTypes, f.Rest, f.Lock = nil, true, redisKey(t, "lock:{biz_id}", time.Minute) }, "keys_shared"},
		"any type, each its key": {func(f *flow.Flow) { f.BizTypes, f.Rest = nil, true }, ""},
		"a type inside a type":   {func(f *flow.Flow) { f.BizTypes = []string{"order", "order:refund"} }, "keys_can_collide"},
		"types apart":            {func(f *flow.Flow) { f.BizTypes = []string{"order", "order_refund"} }, ""},
		"the lock behind the id": {func(f *flow.Flow) {
			f.Marker, f.Lock = redisKey(t, "msg:processed:{biz_id}", time.Hour), redisKey(t, "msg:processed:{biz_id}:lock", time.Minute)
		}, "keys_can_collide"},
	} {
		if got := flowCodes(t, nil, soundFlow(t, c.change)); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestFlowsThatShareKeysAreReported: the same template in two flows, with and without the type.
func TestFlowsThatShareKeysAreReported(t *testing.T) {
	first := soundFlow(t, func(f *flow.Flow) { f.Lock, f.Marker = redisKey(t, "lock:{biz_id}", time.Minute), nil })
	second := soundFlow(t, func(f *flow.Flow) {
		f.Name, f.BizTypes, f.Lock, f.Marker = "refunds", []string{"refund"}, first.Lock, nil
	})
	if got := flowCodes(t, nil, first, second); got != "keys_shared" {
		t.Errorf("%q", got)
	}
	if got := flowCodes(t, nil, soundFlow(t, nil), soundFlow(t, func(f *flow.Flow) { f.Name, f.BizTypes = "refunds", []string{"refund"} })); got != "" {
		t.Errorf("%q", got)
	}
}

func TestTypesThatWereNeverSeenAreReported(t *testing.T) {
	w := newWard(t, soundTable)
	w.flow().BizTypes = []string{"pay", "refund"}
	r := w.examine(t)
	wantProblems(t, r, "types_never_seen flow payments")
	if p := problem(t, r, "types_never_seen"); !strings.Contains(p.Seen.EN, "no record of refund") {
		t.Error(p.Seen.EN)
	}
}

// TestCountersOfARealRedisAreChecked writes what consumers might.
func TestCountersOfARealRedisAreChecked(t *testing.T) {
	store := testkit.Redis(t)
	w := newWard(t, soundTable)
	s := w.addRedis(t, lockstore.Options{Addresses: []string{store.Addr}, DB: store.DB})
	w.flow().Lock, w.flow().Marker = nil, nil
	w.opts.Counters = func(ctx context.Context) (lockstore.Counters, error) { return s.Counters(ctx, "") }
	write := func(fields ...any) {
		t.Helper()
		store.Client.Del(t.Context(), "idem_stat:{pay}", "idem_stat:types")
		store.Client.SAdd(t.Context(), "idem_stat:types", "pay")
		if err := store.Client.HSet(t.Context(), "idem_stat:{pay}", fields...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		fields []any
		want   string
	}{
		"sound":          {[]any{"attempt", 1000, "completed", 990, "ms_le_10", 990, "ms_sum", 9000, "lock_conflict", 10}, ""},
		"written once":   {[]any{"completed", 990, "ms_le_10", 990, "ms_sum", 9000}, ""},
		"in flight":      {[]any{"attempt", 1000, "completed", 990, "ms_le_10", 985}, ""},
		"more ends":      {[]any{"attempt", 1000, "completed", 1200, "ms_le_10", 1200}, "1200 deliveries ended, only 1000 began"},
		"untimed runs":   {[]any{"attempt", 1000, "completed", 900, "failed", 50, "ms_le_10", 800}, "950 runs ended, and 800 have a run time"},
		"too many times": {[]any{"attempt", 1000, "completed", 900, "ms_le_10", 1000}, "900 runs ended, and 1000 have a run time"},
		"malformed":      {[]any{"attempt", "many"}, "field attempt is not a count"},
	} {
		write(c.fields...)
		r := w.examine(t)
		if c.want == "" {
			wantProblemsOf(t, r, KindCounters)
			continue
		}
		wantProblemsOf(t, r, KindCounters, "counters_broken")
		if p := problem(t, r, "counters_broken"); !strings.Contains(p.Seen.EN, c.want) || p.Subject.Name != "main" {
			t.Errorf("%s: %s", name, p.Seen.EN)
		}
	}
	write("attempt", 1)
	store.Client.SAdd(t.Context(), "idem_stat:types", "stranger")
	wantProblemsOf(t, w.examine(t), KindCounters, "counters_unclaimed")
	w.opts.Counters, w.opts.CountersSource = nil, ""
	wantProblemsOf(t, w.examine(t), KindCounters, "not_instrumented")
}

func TestARecentReportIsSharedAndAnInterruptedOneIsNot(t *testing.T) {
	w := newWard(t, soundTable)
	d, err := New(w.opts)
	if err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if r := d.Examine(gone); len(r.Unsure) == 0 {
		t.Error("an interrupted examination knows everything")
	}
	first := d.Recent(t.Context(), time.Hour)
	if len(first.Unsure) > 0 {
		t.Errorf("the interrupted report was kept: %+v", first.Unsure[0])
	}
	if again := d.Recent(t.Context(), time.Hour); again.At != first.At {
		t.Error("a recent report was made anew")
	}
	if fresh := d.Examine(t.Context()); fresh.At == first.At {
		t.Error("an examination was not made")
	}
}

func TestNewRefusesStoresThatAreNotThere(t *testing.T) {
	w := newWard(t, soundTable)
	for want, change := range map[string]func(*Options){
		"at least one flow":  func(o *Options) { o.Flows = nil },
		`the ledger "gone"`:  func(o *Options) { o.Flows[0].Ledger = "gone" },
		`the redis "main"`:   func(o *Options) { o.Flows[0].Lock = redisKey(t, "l:{biz_id}", 0) },
		`the broker "other"`: func(o *Options) { o.Flows[0].Queue = &flow.Queue{Broker: "other"} },
	} {
		o := w.opts
		o.Flows = append([]flow.Flow(nil), w.opts.Flows...)
		change(&o)
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
