package console

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"idemscope/internal/testkit"
)

// TestRealStores: what real stores hold is on the page, the page says what the
// JSON says, whichever store is down the others are shown, and no password
// appears anywhere.
func TestRealStores(t *testing.T) {
	r := newRig(t, rigDeadline)
	r.record(t, "idempotent_record", "order_paid", orderNo, 1, 2*time.Hour+4*time.Minute+30*time.Second)
	r.setRedis(t, "idempotent:order_paid:"+orderNo, "processing", 21*time.Hour+30*time.Minute)
	r.publish(t, "order.paid", 3)
	r.publish(t, "order.paid.dlq", 2)
	testkit.Eventually(t, 30*time.Second, func() bool {
		_, page := r.lookup(t, "order_paid", orderNo)
		text := layerText(t, page, "broker")
		return strings.Contains(text, "order.paid work classic 3 0 0") && strings.Contains(text, "order.paid.dlq dead letter classic 2 0 0")
	}, "the queues' totals do not show")

	t.Run("all up", func(t *testing.T) {
		_, page := r.lookup(t, "order_paid", orderNo)
		a := twin(t, r.URL, page)
		checkTwin(t, page, a)
		if a.Verdict.Code != "stuck" || a.Verdict.Layer != "mysql" {
			t.Errorf("%s on %s", a.Verdict.Code, a.Verdict.Layer)
		}
		for layer, wants := range map[string][]string{
			"redis": {"Lock absent", "Marker found", "21 h 29 min", "Value processing", "redis-cli"},
			"mysql": {"found", "processing status 1", "2 h 4 min without a sign of life (allowed: 5 min)", "SELECT", "+08:00"},
		} {
			text := layerText(t, page, layer)
			for _, want := range wants {
				if !strings.Contains(text, want) {
					t.Errorf("%s lacks %q: %s", layer, want, text)
				}
			}
		}
	})
	t.Run("hostile ids", func(t *testing.T) {
		for i, id := range hostileIDs() {
			if len(id) <= 128 && strings.ToValidUTF8(id, "") == id {
				r.record(t, "idempotent_record", "order_paid", id, 2, time.Hour)
			}
			checkHostile(t, r.URL, id)
			got, page := r.lookup(t, "order_paid", id)
			r.noSecrets(t, fmt.Sprintf("hostile id %d", i), got)
			a := twin(t, r.URL, page)
			checkTwin(t, page, a)
			want := "completed"
			switch {
			case strings.ToValidUTF8(id, "") != id:
				want = "unknown"
			case len(id) > 128:
				want = "key_ambiguous"
			}
			if string(a.Verdict.Code) != want {
				t.Errorf("%q: %s, want %s: %s", shown(id), a.Verdict.Code, want, a.Verdict.Sentence)
			}
		}
	})
	t.Run("taken for another", func(t *testing.T) {
		r.record(t, "points_record", "points_granted", "User-7", 2, time.Hour)
		_, page := r.lookup(t, "points_granted", "user-7")
		checkTwin(t, page, twin(t, r.URL, page))
		if text := layerText(t, page, "mysql"); !strings.Contains(text, "its bytes differ") || !strings.Contains(text, "User-7") {
			t.Error(text)
		}
	})
	for _, down := range []string{"broker", "redis", "mysql"} {
		t.Run(down+" down", func(t *testing.T) { r.down(t, down) })
	}
	t.Run("all down", func(t *testing.T) {
		for _, p := range r.proxies {
			p.Drop(true)
			defer p.Drop(false)
		}
		got, page := r.lookup(t, "order_paid", orderNo)
		r.noSecrets(t, "all down", got)
		for _, layer := range []string{"broker", "redis", "mysql"} {
			if text := layerText(t, page, layer); !strings.Contains(text, "error") {
				t.Errorf("%s: %s", layer, text)
			}
		}
		r.noSecrets(t, "search", get(t, r.URL+"/search?q="+orderNo))
	})
	t.Run("no secrets", func(t *testing.T) {
		for _, path := range []string{"/", "/search?q=" + orderNo, "/api/v1/search?q=" + orderNo, "/key?type=x&id=1", "/readyz"} {
			r.noSecrets(t, path, get(t, r.URL+path))
		}
	})
}

// down checks a page while one store refuses connections: it is an error there,
// and the others are as they were.
func (r *rig) down(t *testing.T, layer string) {
	t.Helper()
	r.proxies[layer].Drop(true)
	defer r.proxies[layer].Drop(false)
	got, page := r.lookup(t, "order_paid", orderNo)
	r.noSecrets(t, layer, got)
	a := twin(t, r.URL, page)
	checkTwin(t, page, a)
	// A completed or stuck record is judged without the broker; without the other two it cannot be.
	if unsure := a.Verdict.Code == "unknown"; unsure != (layer != "broker") {
		t.Errorf("verdict %s", a.Verdict.Code)
	}
	for name, want := range map[string]string{"broker": "order.paid work classic 3", "redis": "Marker found", "mysql": "processing status 1"} {
		text := layerText(t, page, name)
		if name == layer {
			if !strings.Contains(text, "error") || strings.Contains(text, "absent") || strings.Contains(text, want) {
				t.Errorf("%s is down: %s", name, text)
			}
		} else if !strings.Contains(text, want) {
			t.Errorf("%s lacks %q while %s is down: %s", name, want, layer, text)
		}
	}
}

func (r *rig) noSecrets(t *testing.T, page string, got reply) {
	t.Helper()
	for i, secret := range r.secrets {
		if strings.Contains(got.body, secret) || strings.Contains(fmt.Sprint(got.Header), secret) {
			t.Errorf("%s shows secret %d", page, i)
		}
	}
}

// TestHangingStore: a store that says nothing costs its deadline, and no more.
func TestHangingStore(t *testing.T) {
	r := newRig(t, 500*time.Millisecond)
	r.record(t, "idempotent_record", "order_paid", orderNo, 2, time.Hour)
	r.proxies["redis"].Hang(true)
	start := time.Now()
	got := get(t, r.URL+keyPath("order_paid", orderNo))
	if took := time.Since(start); got.StatusCode != http.StatusOK || took > 5*time.Second {
		t.Errorf("%d after %s", got.StatusCode, took)
	}
	if text := layerText(t, got.document(t), "redis"); !strings.Contains(text, "no answer within") {
		t.Error(text)
	}
	r.noSecrets(t, "hanging", got)
}
