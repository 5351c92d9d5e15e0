package exporter

import (
	"testing"
	"time"

	"idemscope/internal/flow"
)

func TestRoutes(t *testing.T) {
	lock := &flow.RedisKey{TTL: 15 * time.Second}
	flows := []flow.Flow{
		{Name: "payments", Ledger: "orders", BizTypes: []string{"pay", "refund"}, Lock: lock, StaleAfter: time.Minute},
		{Name: "rest", Ledger: "orders", Rest: true, Lock: &flow.RedisKey{TTL: time.Second, Renewed: true}},
		{Name: "elsewhere", Ledger: "points", BizTypes: []string{"pay"}},
	}
	orders := newRoutes("orders", flows)
	for bizType, want := range map[string]route{
		"pay":    {"payments", time.Minute, 15 * time.Second},
		"refund": {"payments", time.Minute, 15 * time.Second},
		"sign":   {"rest", 0, 0},
	} {
		if got := orders.of(bizType); got == nil || *got != want {
			t.Errorf("orders, %s: %+v, want %+v", bizType, got, want)
		}
	}
	points := newRoutes("points", flows)
	if got := points.of("pay"); got == nil || got.flow != "elsewhere" || got.lockTTL != 0 {
		t.Errorf("points, pay: %+v", got)
	}
	if got := points.of("refund"); got != nil {
		t.Errorf("points, refund: %+v, want no flow", got)
	}
}
