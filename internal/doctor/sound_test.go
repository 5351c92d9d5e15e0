package doctor

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"idemscope/internal/broker/rabbitmq"
	"idemscope/internal/flow"
	"idemscope/internal/ledger"
	"idemscope/internal/lockstore"
	"idemscope/internal/testkit"
)

// TestASoundSetUpHasNoProblem has every store, each with a user that can do no more than it needs.
func TestASoundSetUpHasNoProblem(t *testing.T) {
	w := newWard(t, soundTable)
	master, _ := startMaster(t)
	w.addRedis(t, lockstore.Options{Addresses: []string{master.Addr}, User: "observer", Password: "pass-of-observer"})
	_, ch := w.addBroker(t, nil)
	declare(t, ch, "order.paid", sound(nil))
	declare(t, ch, "order.paid.dlq", nil)
	w.count(counted("pay", 1000, 50*time.Millisecond))
	r := w.examine(t)
	wantProblems(t, r)
	if r.Exit() != 0 || len(r.Fine) < 40 || r.At.IsZero() || r.Took <= 0 || r.Took > deadline {
		t.Errorf("exit %d, %d fine, at %s, took %s", r.Exit(), len(r.Fine), r.At, r.Took)
	}
	t.Logf("%d checks took %s", len(r.Fine), r.Took)
}

// counted is a type with n runs, all of that length.
func counted(bizType string, n uint64, each time.Duration) lockstore.TypeCounters {
	c := lockstore.TypeCounters{BizType: bizType, Attempt: n, Acquired: n, Completed: n, MsSum: n * uint64(each.Milliseconds())}
	at := len(c.Buckets) - 1
	for i, bound := range lockstore.RunBounds {
		if uint64(each.Milliseconds()) <= bound {
			at = i
			break
		}
	}
	c.Buckets[at] = n
	return c
}

// TestAStoreThatCannotBeReadIsCannotTell takes each store away: nothing is
// invented, nothing passes for fine, and the others are examined all the same.
func TestAStoreThatCannotBeReadIsCannotTell(t *testing.T) {
	w := newWard(t, soundTable)
	master, _ := startMaster(t)
	redisWay := testkit.NewProxy(t, master.Addr)
	store := w.addRedis(t, lockstore.Options{Addresses: []string{redisWay.Addr}, User: "observer", Password: "pass-of-observer"})
	w.opts.Counters = func(ctx context.Context) (lockstore.Counters, error) { return store.Counters(ctx, "") }
	var brokerWay *testkit.Proxy
	_, ch := w.addBroker(t, func(o *rabbitmq.Options) {
		brokerWay = testkit.NewProxy(t, strings.TrimPrefix(o.Management, "http://"))
		o.Management = "http://" + brokerWay.Addr
	})
	declare(t, ch, "order.paid", sound(nil))
	declare(t, ch, "order.paid.dlq", nil)
	wantProblems(t, w.examine(t))

	for name, c := range map[string]struct {
		take func(bool)
		// kinds are those of the subjects that cannot be examined.
		kinds string
	}{
		"redis refuses connections": {redisWay.Drop, "redis counters flow"},
		"the broker refuses":        {brokerWay.Drop, "broker queue"},
		"the broker hangs":          {brokerWay.Hang, "broker queue"},
		"redis hangs":               {redisWay.Hang, "redis counters flow"},
	} {
		t.Run(name, func(t *testing.T) {
			c.take(true)
			defer c.take(false)
			began := time.Now()
			r := w.examine(t)
			if took := time.Since(began); took > deadline+5*time.Second {
				t.Errorf("it took %s", took)
			}
			if len(r.Problems) > 0 || r.Exit() != 3 || len(r.Unsure) == 0 {
				t.Errorf("exit %d with %q", r.Exit(), words(r))
			}
			for _, u := range r.Unsure {
				if !strings.Contains(c.kinds, string(u.Subject.Kind)) || u.Reason.EN == "" || u.Reason.ZH == "" {
					t.Errorf("%s %v: %+v", u.Code, u.Subject, u.Reason)
				}
			}
			for _, p := range r.Fine {
				if strings.Contains(strings.Fields(c.kinds)[0], string(p.Subject.Kind)) && p.Subject.Kind != KindFlow {
					t.Errorf("%s is said to be fine", p.Code)
				}
			}
			if !isFine(r, "no_unique_key") {
				t.Error("MySQL was not examined")
			}
		})
	}
}

// TestMySQLThatCannotBeReadIsCannotTell is the same for MySQL.
func TestMySQLThatCannotBeReadIsCannotTell(t *testing.T) {
	w := newWard(t, soundTable)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	w.server = openServer(t, serverOptions(address))
	w.addLedger(t, "orders", "idempotent_record", "idempotent_record", ledger.MappingSpec{})
	r := w.examine(t)
	if len(r.Problems) > 0 || r.Exit() != 3 {
		t.Errorf("exit %d with %q", r.Exit(), words(r))
	}
	gaps := r.Gaps()
	if len(gaps) < 2 || !strings.Contains(gaps[0].Reason.EN, "refused") || len(gaps[0].Checks) < 3 {
		t.Errorf("%+v", gaps)
	}
	for _, p := range r.Fine {
		if p.Subject.Kind == KindLedger || p.Subject.Kind == KindMySQL {
			t.Errorf("%s is said to be fine", p.Code)
		}
	}
}

func TestEveryCheckIsWordedInBothLanguages(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range Checks() {
		if seen[c.Code] {
			t.Errorf("%s is there twice", c.Code)
		}
		seen[c.Code] = true
		for _, text := range []flow.Text{c.Title, c.Why} {
			if text.EN == "" || text.ZH == "" || text.EN == text.ZH {
				t.Errorf("%s: %+v", c.Code, text)
			}
		}
		if strings.ToLower(c.Code) != c.Code || strings.ContainsAny(c.Code, " -") {
			t.Errorf("%q is no code", c.Code)
		}
		official := c.Manual == ""
		for _, site := range []string{"https://dev.mysql.com/doc/", "https://redis.io/docs/", "https://www.rabbitmq.com/docs/"} {
			official = official || strings.HasPrefix(c.Manual, site)
		}
		if !official {
			t.Errorf("%s: %s", c.Code, c.Manual)
		}
	}
}
