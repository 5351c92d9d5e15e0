package console

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/semaphore"

	"idemscope/internal/answer"
	"idemscope/internal/flow"
	"idemscope/internal/testkit"
)

// quietDesk knows of no key.
func quietDesk(t *testing.T, flows []flow.Flow) Desk {
	t.Helper()
	return canned{record: records(), lock: redisKeys(none(), none()), queues: queues(0, 0, 0)}.desk(t, flows)
}

// hanging answers when it is let go, and counts who is inside.
type hanging struct {
	Desk
	inside, most atomic.Int64
	let          chan struct{}
}

func (h *hanging) AnswerWithin(ctx context.Context, p flow.Place, _ time.Duration) (answer.Answer, error) {
	n := h.inside.Add(1)
	defer h.inside.Add(-1)
	for most := h.most.Load(); n > most && !h.most.CompareAndSwap(most, n); most = h.most.Load() {
	}
	<-h.let
	return h.Desk.Answer(ctx, p)
}

func TestNoMoreThanSoManyLookupsRunAtOnce(t *testing.T) {
	flows := shopFlows(t)[:1]
	h := &hanging{Desk: quietDesk(t, flows), let: make(chan struct{})}
	s := serve(t, Options{Desk: h, Flows: flows})
	var all sync.WaitGroup
	statuses := make(chan int, 3*maxLookups)
	for range 3 * maxLookups {
		all.Go(func() {
			statuses <- get(t, s.URL+keyPath("order_paid", "1")).StatusCode
		})
	}
	testkit.Eventually(t, 10*time.Second, func() bool { return h.inside.Load() == maxLookups }, "so many never come in at once")
	close(h.let)
	all.Wait()
	close(statuses)
	for status := range statuses {
		if status != http.StatusOK {
			t.Errorf("status %d", status)
		}
	}
	if most := h.most.Load(); most != maxLookups {
		t.Errorf("%d look-ups at once, want %d", most, maxLookups)
	}
}

func TestWhoWaitsTooLongIsToldSo(t *testing.T) {
	room := semaphore.NewWeighted(maxLookups)
	if !room.TryAcquire(maxLookups) {
		t.Fatal("no room at the start")
	}
	o := orderly{Desk: quietDesk(t, shopFlows(t)[:1]), room: room, wait: time.Millisecond}
	if _, err := o.Answer(t.Context(), flow.Place{}); err != errBusy {
		t.Errorf("answer: %v", err)
	}
	if _, err := o.Search(t.Context(), "1"); err != errBusy {
		t.Errorf("search: %v", err)
	}
	left, leave := context.WithCancel(t.Context())
	leave()
	if _, err := o.Answer(left, flow.Place{}); err != context.Canceled {
		t.Errorf("a visitor who has left: %v", err)
	}
	room.Release(maxLookups)
	if _, err := o.Search(t.Context(), "1"); err != nil {
		t.Errorf("with room again: %v", err)
	}
}

// busyDesk has no room left.
type busyDesk struct{ Desk }

func (busyDesk) AnswerWithin(context.Context, flow.Place, time.Duration) (answer.Answer, error) {
	return answer.Answer{}, errBusy
}

func TestTheBusyPageIsFriendlyInBothLanguages(t *testing.T) {
	flows := shopFlows(t)[:1]
	s := serve(t, Options{Desk: busyDesk{quietDesk(t, flows)}, Flows: flows})
	for lang, want := range map[string]string{"en": "Load this page again in a moment", "zh": "请稍后重新加载本页"} {
		r := get(t, s.URL+keyPath("order_paid", "1", "lang", lang))
		r.document(t)
		if r.StatusCode != http.StatusServiceUnavailable || r.Header.Get("Retry-After") != "1" || !strings.Contains(r.body, want) {
			t.Errorf("%s: status %d, retry after %q:\n%s", lang, r.StatusCode, r.Header.Get("Retry-After"), r.body)
		}
	}
}
