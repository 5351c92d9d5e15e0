package janitor

import (
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"idemscope/internal/ledger"
	"idemscope/internal/testkit"
)

// asking makes a query of the reading user of the database.
func asking(t *testing.T, db *testkit.Database, sql string, max float64) *Query {
	t.Helper()
	server, err := ledger.NewServer(ledger.ServerOptions{Name: "main", Address: db.Addr, Database: db.Name, User: "root", MaxConns: 1, StatementLimit: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	return &Query{Max: max, Number: func(ctx context.Context) (float64, error) { return server.Number(ctx, sql) }}
}

func TestAQueryHoldsTheSweepUpUntilItsNumberFalls(t *testing.T) {
	db, p := ready(t, false, 1000)
	db.Exec(t, "CREATE TABLE jobs (n INT)")
	db.Exec(t, "INSERT INTO jobs VALUES (1), (2), (3)")
	task := p.task(t)
	task.Limits.Query = asking(t, db, "SELECT COUNT(*) FROM jobs", 2)
	j, c := atNight(t, task, time.Now())
	looks := 0
	j.pause = func(_ context.Context, d time.Duration) {
		c.add(d)
		if looks++; looks == 3 {
			if status := j.Status()[0]; status.State != HeldUp || status.Run.Hold != ByQuery || !strings.Contains(status.Why.EN, "gives 3; the limit is 2") || !strings.Contains(status.Why.ZH, "3") {
				t.Errorf("%+v %+v", status, status.Run)
			}
			db.Exec(t, "DELETE FROM jobs WHERE n = 1")
		}
	}
	r := sweepNow(t, j, Done)
	if r.Gone() != 1000 || r.Tables[0].Throttled[ByQuery] != 3*probeEvery {
		t.Errorf("%d rows, held up %v", r.Gone(), r.Tables[0].Throttled)
	}
	if got := value(t, j, "idem_janitor_throttled_seconds_total", "query"); got != 3 {
		t.Errorf("metric %v", got)
	}
}

func TestAQueryWithoutANumberHoldsTheSweepUpUntilPatienceEnds(t *testing.T) {
	db, p := ready(t, false, 100)
	for sql, says := range map[string]string{
		"SELECT 1 FROM nowhere": "no such table",
		"SELECT NULL":           "NULL",
		"SELECT 1 FROM idempotent_record WHERE id < 0":    "no row",
		"SELECT 1 UNION ALL SELECT 2":                     "more than one row or column",
		"SELECT 1, 2":                                     "more than one row or column",
		"SELECT 'many'":                                   "no number",
		"SELECT 'nan'":                                    "no number",
		"DELETE FROM idempotent_record":                   "",
		"SELECT SLEEP(30) + 0 FROM idempotent_record":     "",
		"SELECT COUNT(*) FROM idempotent_record FOR BLAH": "",
	} {
		t.Run(sql, func(t *testing.T) {
			task := p.task(t)
			task.Limits.Query = asking(t, db, sql, 1e9)
			j, _ := atNight(t, task, time.Now())
			if strings.Contains(sql, "SLEEP") {
				j.patience = 2 * probeEvery
			}
			r := sweepNow(t, j, Throttled)
			if r.Gone() != 0 || r.Exit() != 1 || r.Tables[0].Throttled[ByQueryFailed] != j.patience || !strings.Contains(r.Why.EN, says) || r.Why.ZH == "" {
				t.Errorf("%d rows, %v: %s", r.Gone(), r.Tables[0].Throttled, r.Why.EN)
			}
		})
	}
	if n := count(t, db.DB, "SELECT COUNT(*) FROM idempotent_record"); n != 110 {
		t.Errorf("%d rows are left", n)
	}
}

func gate(t *testing.T, address string) *Gate {
	t.Helper()
	g, err := NewGate(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close() })
	return g
}

func TestAnHTTPCheckHoldsTheSweepUpUntilItAgrees(t *testing.T) {
	_, p := ready(t, false, 1000)
	answers := []int{http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusFound, http.StatusNotFound, http.StatusNoContent}
	var asked atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := asked.Add(1) - 1
		if r.URL.Path != "/token-s3cret" || r.URL.RawQuery != "key=s3cret" {
			t.Errorf("asked for %s", r.URL)
		}
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(answers[min(int(n), len(answers)-1)])
	}))
	defer s.Close()
	task := p.task(t)
	task.Limits.HTTP = gate(t, s.URL+"/token-s3cret?key=s3cret")
	j, c := atNight(t, task, time.Now())
	j.pause = func(_ context.Context, d time.Duration) {
		c.add(d)
		if why := j.Status()[0].Why; strings.Contains(why.EN+why.ZH, "s3cret") {
			t.Errorf("the token is shown: %s", why.EN)
		}
	}
	r := sweepNow(t, j, Done)
	if r.Gone() != 1000 || r.Tables[0].Throttled[ByHTTP] != 4*probeEvery {
		t.Errorf("%d rows, held up %v", r.Gone(), r.Tables[0].Throttled)
	}
	if got := value(t, j, "idem_janitor_throttled_seconds_total", "http"); got != 4 {
		t.Errorf("metric %v", got)
	}
}

func TestAnHTTPCheckThatDoesNotAnswerHoldsTheSweepUpAndTellsNoSecret(t *testing.T) {
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer silent.Close()
	_, p := ready(t, false, 100)
	for address, says := range map[string]string{
		"http://user:s3cret@127.0.0.1:1/s3cret":                           "http://127.0.0.1:1 cannot be asked whether to go on: connection refused",
		"http://no-such-host.invalid/s3cret":                              "the host is not known",
		strings.Replace(silent.URL, "//", "//u:s3cret@", 1) + "/s3cret":   "no answer within 2 s",
		strings.Replace(silent.URL, "http:", "https:", 1) + "/?k=s3cret#": "cannot be asked",
	} {
		task := p.task(t)
		task.Limits.HTTP = gate(t, address)
		j, _ := atNight(t, task, time.Now())
		j.patience = probeEvery
		r := sweepNow(t, j, Throttled)
		if r.Tables[0].Throttled[ByHTTPFailed] != probeEvery || !strings.Contains(r.Why.EN, says) || strings.Contains(r.Why.EN+r.Why.ZH, "s3cret") {
			t.Errorf("%s: held up %v: %s", address, r.Tables[0].Throttled, r.Why.EN)
		}
	}
	for _, address := range []string{"ftp://u:s3cret@host/", "http://", "http://u:s3cret@host:port\x7f"} {
		if _, err := NewGate(address); err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%q: %v", address, err)
		}
	}
}

func TestACriticalLimitEndsTheRunAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		limit Critical
		load  ledger.Load
		lag   time.Duration
	}{
		"threads":  {limit: Critical{ThreadsRunning: 100}, load: ledger.Load{ThreadsRunning: 101}},
		"history":  {limit: Critical{HistoryLength: 5000}, load: ledger.Load{History: 5001, HistoryKnown: true}},
		"replica":  {limit: Critical{ReplicaLag: time.Minute}, lag: time.Minute + time.Second},
		"no limit": {load: ledger.Load{ThreadsRunning: 101, History: 5001, HistoryKnown: true}},
		"unknown":  {limit: Critical{HistoryLength: 5000}, load: ledger.Load{History: 5001}},
	} {
		t.Run(name, func(t *testing.T) {
			_, p := ready(t, false, 1000)
			task := p.task(t)
			task.Batch = 100
			task.Limits = Limits{Critical: c.limit, MaxReplicaLag: time.Hour}
			batches := 0
			task.Limits.Replicas = []Replica{follower(func() (time.Duration, error) {
				if batches > 2 {
					return c.lag, nil
				}
				return 0, nil
			})}
			open := task.Open
			task.Open = func(ctx context.Context, table *ledger.SweepTable) (Session, error) {
				s, err := open(ctx, table)
				return loaded{s, func() ledger.Load {
					if batches > 2 {
						return c.load
					}
					return ledger.Load{}
				}}, err
			}
			meddle(&task, func(ledger.SweepBatch) error { batches++; return nil })
			j, clock := atNight(t, task, time.Now())
			j.history = NewHistory(filepath.Join(t.TempDir(), "runs"))
			j.pause = func(context.Context, time.Duration) { clock.add(probeEvery) }
			if name == "no limit" || name == "unknown" {
				if r := sweepNow(t, j, Done); r.Gone() != 1000 {
					t.Errorf("%d rows", r.Gone())
				}
				return
			}
			r := sweepNow(t, j, IsCritical)
			if r.Tables[0].Batches != 3 || r.Gone() == 1000 || r.Exit() != 1 || !strings.Contains(r.Why.EN, "throttle.critical.") || r.Why.ZH == "" || len(r.Tables[0].Throttled) != 0 {
				t.Errorf("%d rows, exit %d: %s", r.Gone(), r.Exit(), r.Why.EN)
			}
			if got := j.Recent(1); len(got) != 1 || got[0].End != "critical" || got[0].WhyEN != r.Why.EN || got[0].Rows != r.Gone() {
				t.Errorf("the history has %+v", got)
			}
			if s := j.Status()[0]; s.State != Broken || s.Why != r.Why {
				t.Errorf("%+v", s)
			}
		})
	}
}
