package exporter

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"idemscope/internal/flow"
	"idemscope/internal/testkit"
)

func TestWhoseKeyItIs(t *testing.T) {
	key := func(redis, text string) *flow.RedisKey {
		return &flow.RedisKey{Redis: redis, Template: template(t, text)}
	}
	m := newKeyMap("main", []flow.Flow{
		{Name: "pay", BizTypes: []string{"pay", "refund"}, Lock: key("main", "lock:{biz_type}:{biz_id}"), Marker: key("main", "done:{biz_id}")},
		{Name: "rest", Rest: true, Lock: key("main", "lock:{biz_type}:{biz_id}"), Marker: key("main", "other:{biz_id}")},
		{Name: "sign", BizTypes: []string{"sign"}, Lock: key("elsewhere", "lock:{biz_type}:{biz_id}"), Marker: key("main", "{biz_type}/{{biz_id}}")},
		{Name: "bare", BizTypes: []string{"bare"}},
	})
	if got := m.prefixes(); !slices.Equal(got, []string{"", "done:", "lock:", "other:"}) {
		t.Errorf("prefixes %q", got)
	}
	show := func(owners []owner) string {
		var texts []string
		for _, o := range owners {
			var keys []string
			for _, p := range o.places {
				keys = append(keys, p.Key.BizType+"="+p.Key.BizID)
			}
			texts = append(texts, o.flow+"["+strings.Join(keys, " ")+"]")
		}
		return strings.Join(texts, " ")
	}
	for _, c := range []struct{ key, lock, marker string }{
		{"lock:pay:1", "pay[pay=1]", ""},
		{"lock:pay:a:b", "pay[pay=a:b]", ""},
		{"lock:new:1", "rest[new=1]", ""},
		{"lock:sign:1", "", ""}, // its lock is in another Redis
		{"lock:bare:1", "", ""}, // named by a flow without a lock
		{"lock:pay:", "", ""},
		{"lock:pay", "", ""},
		{"done:1", "", "pay[pay=1 refund=1]"},
		{"other:1", "", "rest[]"},
		{"sign/{1}", "", "sign[sign=1]"},
		{"sign/1", "", ""},
		{"session:1", "", ""},
	} {
		lock, marker := show(m.lockOwners(c.key)), show(m.markerOwners(c.key))
		if lock != c.lock || marker != c.marker {
			t.Errorf("%s: lock of %q, marker of %q, want %q and %q", c.key, lock, marker, c.lock, c.marker)
		}
		if got := m.wanted(c.key); got != (c.lock+c.marker != "") {
			t.Errorf("%s: wanted %v", c.key, got)
		}
	}
	if m := newKeyMap("third", []flow.Flow{{Name: "pay", Lock: key("main", "lock:{biz_id}")}}); len(m.flows) > 0 {
		t.Errorf("flows %v", m.flows)
	}
}

func TestSweepCountsKeys(t *testing.T) {
	t.Parallel()
	s := newKeyStage(t, keyStageOptions{})
	s.now().absent(t, "idem_locks", "idem_markers", "idemscope_sweep", "idemscope_markers")
	s.set("session:1", 0)
	s.set("shop:lock:pay", 0) // nobody's
	s.set("shop:lock:other:1", 0)
	s.set("shop:lock:pay:1", 10*time.Second+time.Hour/2) // beyond its 15 s
	s.set("shop:lock:pay:2", 14*time.Second)
	s.set("shop:lock:refund:3", 0)
	s.insert("pay", completed, "1", "2")
	s.set("shop:done:pay:1", time.Hour)
	s.set("shop:done:pay:2", time.Hour)
	s.set("shop:done:pay:lost", time.Hour)
	before := float64(time.Now().Add(-time.Second).Unix())
	s.run()
	want := samples{
		redisUp: 1, ofFlow("idem_locks"): 3, ofFlow("idem_locks_without_ttl"): 1, ofFlow("idem_locks_implausible_ttl"): 1,
		ofFlow("idem_markers"): 3, ofFlow("idem_markers_without_record"): 1, ofFlow("idemscope_markers_sampled"): 3,
		`idem_markers{flow="signs"}`: 0, `idem_markers_without_record{flow="signs"}`: 0, `idemscope_markers_sampled{flow="signs"}`: 0,
		`idemscope_sweep_keys_seen{source="main"}`: 6, `idem_redis_evicted_keys_total{redis="main"}`: 0,
	}
	s.reaches(want)
	got := s.now()
	got.absent(t, `idem_locks{flow="signs"}`, `idem_locks_without_ttl{flow="signs"}`, "idem_lock_expirations_total")
	const ended = `idemscope_sweep_completed_timestamp_seconds{kind="redis",source="main"}`
	if got[ended] < before {
		t.Errorf("the sweep ended at %v", got[ended])
	}
	if took := got[`idemscope_sweep_duration_seconds{kind="redis",source="main"}`]; took <= 0 || took > 20 {
		t.Errorf("the sweep took %v s", took)
	}
	lint(t, s.exporter.Gatherer())
	odd := []flow.Place{place1("payments", "refund", "3"), place1("payments", "pay", "lost")}
	if list := s.exporter.suspectKeys.list(); !slices.Equal(list, odd) {
		t.Errorf("suspects %v", list)
	}

	s.del("shop:lock:refund:3")
	s.insert("pay", completed, "lost")
	s.reaches(samples{ofFlow("idem_locks"): 2, ofFlow("idem_locks_without_ttl"): 0, ofFlow("idem_markers_without_record"): 0})
	if list := s.exporter.suspectKeys.list(); len(list) > 0 {
		t.Errorf("suspects %v", list)
	}
	if s.log.String() != "" {
		t.Errorf("log: %s", s.log)
	}
}

// What is odd for a moment only is not counted.
func TestSweepLooksTwice(t *testing.T) {
	t.Parallel()
	server := testkit.StartRedis(t)
	s := newKeyStage(t, keyStageOptions{addr: server.Addr})
	s.redis.Client = redis.NewClient(&redis.Options{Addr: server.Addr, DisableIdentity: true})
	defer s.redis.Client.Close()
	sweep := s.source().sweep
	sweep.patience = 2 * time.Second
	s.set("shop:lock:pay:1", 0)
	s.set("shop:lock:pay:2", 0)
	s.set("shop:lock:pay:3", 0)
	s.set("shop:done:pay:1", time.Hour)
	s.set("shop:done:pay:2", time.Hour)
	s.set("shop:done:pay:3", time.Hour)
	ended := make(chan bool, 1)
	go func() { ended <- sweep.onePass(t.Context()) }()
	calls := func() bool {
		info := s.redis.Client.Info(t.Context(), "commandstats").Val()
		return strings.Contains(info, "cmdstat_pttl:calls=6,")
	}
	testkit.Eventually(t, 5*time.Second, calls, "no key is looked at")
	s.set("shop:lock:pay:1", time.Minute)
	s.del("shop:lock:pay:2")
	s.insert("pay", completed, "1")
	s.del("shop:done:pay:2")
	if !<-ended {
		t.Fatal("the pass did not end")
	}
	c := sweep.last.byFlow["payments"]
	if c.beyond != 1 || c.unrecorded != 1 || c.sampled != 3 || c.locks != 3 {
		t.Errorf("%+v", *c)
	}
}

func TestMarkersAreSampled(t *testing.T) {
	t.Parallel()
	s := newKeyStage(t, keyStageOptions{})
	for i := range 600 {
		s.set(fmt.Sprint("shop:done:pay:", i), time.Hour)
	}
	s.set("shop:sign:1", 0)
	s.run()
	// 500 for two flows; one of them has few.
	s.reaches(samples{ofFlow("idem_markers"): 600, ofFlow("idemscope_markers_sampled"): 250, ofFlow("idem_markers_without_record"): 250,
		`idem_markers{flow="signs"}`: 1, `idemscope_markers_sampled{flow="signs"}`: 1, `idem_markers_without_record{flow="signs"}`: 1})
	if n := len(s.exporter.suspectKeys.list()); n != 251 {
		t.Errorf("%d suspects", n)
	}
}

func TestSampleIsFair(t *testing.T) {
	m := newKeyMap("main", guarded(t))
	drawn := map[string]int{}
	for range 2000 {
		tally := newKeyTally(m)
		tally.perFlow = 2
		for i := range 10 {
			key := fmt.Sprint("shop:done:pay:", i)
			c := tally.byFlow["payments"]
			tally.draw(c, key, m.markerOwners(key)[0])
		}
		for _, c := range tally.byFlow["payments"].sample {
			drawn[c.key]++
		}
	}
	for key, times := range drawn { // 400 each; 5 standard deviations are 90
		if times < 300 || times > 500 {
			t.Errorf("%s was drawn %d times", key, times)
		}
	}
	if len(drawn) != 10 {
		t.Errorf("%d keys were drawn", len(drawn))
	}
}

func TestMarkersWhoseLedgerCannotBeRead(t *testing.T) {
	t.Parallel()
	s := newKeyStage(t, keyStageOptions{})
	s.set("shop:done:pay:1", time.Hour)
	s.mysqlWay.Drop(true)
	s.run()
	s.reaches(samples{ofFlow("idem_markers"): 1, ofFlow("idemscope_markers_sampled"): 0, `idem_markers_without_record{flow="signs"}`: 0})
	s.now().absent(t, ofFlow("idem_markers_without_record"))
	if list := s.exporter.suspectKeys.list(); len(list) > 0 {
		t.Errorf("suspects %v", list)
	}
	s.mysqlWay.Drop(false)
	s.reaches(samples{ofFlow("idem_markers_without_record"): 1, ofFlow("idemscope_markers_sampled"): 1})
}

func TestLocksWithoutTTLBeyondTheBound(t *testing.T) {
	m := newKeyMap("main", guarded(t))
	tally := newKeyTally(m)
	for i := range maxForever + 5 {
		tally.add(forever(fmt.Sprint("shop:lock:pay:", i)))
	}
	c := tally.byFlow["payments"]
	if c.locks != maxForever+5 || len(c.forever) != maxForever || c.beyond != 5 {
		t.Errorf("%d locks, %d kept, %d beyond", c.locks, len(c.forever), c.beyond)
	}
}

func TestSuspectKeys(t *testing.T) {
	a, b, c := place1("f", "t", "a"), place1("f", "t", "b"), place1("f", "t", "c")
	var s suspectKeys
	s.add(a)
	s.add(a)
	s.replace(nil, []flow.Place{b, b})
	s.replace([]flow.Place{b}, []flow.Place{c})
	if got := s.list(); !slices.Equal(got, []flow.Place{a, c}) {
		t.Errorf("%v", got)
	}
	for i := range maxSuspectKeys + 10 {
		s.add(place1("f", "t", fmt.Sprint(i)))
	}
	if got := len(s.list()); got != maxSuspectKeys {
		t.Errorf("%d suspects", got)
	}
	var none *suspectKeys
	if none.list() != nil {
		t.Error("a list that is not there has suspects")
	}
}
