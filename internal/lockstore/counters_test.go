package lockstore

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"idemscope/internal/testkit"
)

func TestCounters(t *testing.T) {
	db := testkit.Redis(t)
	s := open(t, Options{Addresses: []string{db.Addr}, DB: db.DB})
	for _, prefix := range []string{"", "shop:"} {
		do(t, db.Client, "SADD", prefix+"idem_stat:types", "order_paid", "refund")
		do(t, db.Client, "HSET", prefix+"idem_stat:{order_paid}",
			"attempt", "110", "lock_conflict", "1", "dedup_status", "2", "dedup_record", "3", "completed", "4", "failed", "5",
			"acquired", "6", "retry", "7", "lock_lost", "8", "degraded", "9", "ms_le_5", "10", "ms_le_300000", "11", "ms_le_inf", "12", "ms_sum", "9223372036854775807",
			"a field of version 2", "not a number", "ms_le_7", "1")
		got, err := s.Counters(t.Context(), prefix)
		if err != nil {
			t.Fatal(err)
		}
		want := TypeCounters{BizType: "order_paid", Attempt: 110, LockConflict: 1, DedupStatus: 2, DedupRecord: 3, Completed: 4, Failed: 5,
			Acquired: 6, Retry: 7, LockLost: 8, Degraded: 9, MsSum: 9223372036854775807}
		want.Buckets[0], want.Buckets[len(RunBounds)-1], want.Buckets[len(RunBounds)] = 10, 11, 12
		if !slices.Equal(got.Types, []TypeCounters{want, {BizType: "refund"}}) {
			t.Errorf("prefix %q: %+v", prefix, got.Types)
		}
		if got.Cut || len(got.ContractErrors) > 0 || time.Since(got.ReadAt) > time.Minute {
			t.Errorf("prefix %q: %+v", prefix, got)
		}
	}
}

func TestNoCountersAtAll(t *testing.T) {
	db := testkit.Redis(t)
	got, err := open(t, Options{Addresses: []string{db.Addr}, DB: db.DB}).Counters(t.Context(), "")
	if err != nil || len(got.Types) > 0 || got.Cut || len(got.ContractErrors) > 0 {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestBrokenCountersAreNamedAndSkipped(t *testing.T) {
	db := testkit.Redis(t)
	s := open(t, Options{Addresses: []string{db.Addr}, DB: db.DB})
	do(t, db.Client, "SADD", "idem_stat:types", "a", "b\n", "c")
	do(t, db.Client, "HSET", "idem_stat:{a}", "attempt", "7", "completed", "order-4711", "failed", "-1", "retry", "1.5", "degraded", "", "ms_sum", "18446744073709551616")
	do(t, db.Client, "SET", "idem_stat:{b\n}", "1")
	do(t, db.Client, "HSET", "idem_stat:{c}", "attempt", "9")
	got, err := s.Counters(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got.Types, []TypeCounters{{BizType: "a", Attempt: 7}, {BizType: "c", Attempt: 9}}) {
		t.Errorf("got %+v", got.Types)
	}
	want := []string{
		"idem_stat:{a}: field completed is not a count", "idem_stat:{a}: field failed is not a count", "idem_stat:{a}: field retry is not a count",
		"idem_stat:{a}: field degraded is not a count", "idem_stat:{a}: field ms_sum is not a count", `idem_stat:{b\n} is not a hash`,
	}
	slices.Sort(want)
	slices.Sort(got.ContractErrors)
	if !slices.Equal(got.ContractErrors, want) {
		t.Errorf("got %q, want %q", got.ContractErrors, want)
	}
}

func TestTheSetOfTypesIsNoSet(t *testing.T) {
	db := testkit.Redis(t)
	do(t, db.Client, "SET", "idem_stat:types", "order")
	got, err := open(t, Options{Addresses: []string{db.Addr}, DB: db.DB}).Counters(t.Context(), "")
	if err != nil || !slices.Equal(got.ContractErrors, []string{"idem_stat:types is not a set"}) {
		t.Errorf("got %+v, %v", got, err)
	}
}

// Somebody who writes biz_ids into the set must not make us read without end.
func TestTypesAreBounded(t *testing.T) {
	db := testkit.Redis(t)
	s := open(t, Options{Addresses: []string{db.Addr}, DB: db.DB})
	types := []any{"SADD", "idem_stat:types"}
	for i := range MaxTypes {
		types = append(types, fmt.Sprintf("type-%05d", i))
	}
	do(t, db.Client, types...)
	if got, err := s.Counters(t.Context(), ""); err != nil || got.Cut || len(got.Types) != MaxTypes {
		t.Errorf("%d types, cut %t, %v", len(got.Types), got.Cut, err)
	}
	for i := range types[2:] {
		types[2+i] = fmt.Sprintf("more-%05d", i)
	}
	for range 20 {
		for i := range types[2:] {
			types[2+i] = types[2+i].(string) + "x"
		}
		do(t, db.Client, types...)
	}
	var got Counters
	var err error
	seen := monitor(t, db.Addr, func() { got, err = s.Counters(t.Context(), "") })
	if err != nil || !got.Cut || len(got.Types) != MaxTypes {
		t.Errorf("%d types, cut %t, %v", len(got.Types), got.Cut, err)
	}
	scans := slices.DeleteFunc(seen, func(line string) bool { return !strings.Contains(line, `"sscan"`) })
	if len(scans) > MaxTypes/scanPage+2 {
		t.Errorf("%d pages of a set that is too large", len(scans))
	}
}

func TestManyBrokenCountersAreBounded(t *testing.T) {
	db := testkit.Redis(t)
	pipe := db.Client.Pipeline()
	for i := range 2 * maxContractErrors {
		bizType := fmt.Sprintf("type-%d", i)
		pipe.SAdd(t.Context(), "idem_stat:types", bizType)
		pipe.HSet(t.Context(), "idem_stat:{"+bizType+"}", "attempt", "many")
	}
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	got, err := open(t, Options{Addresses: []string{db.Addr}, DB: db.DB}).Counters(t.Context(), "")
	if err != nil || len(got.ContractErrors) != maxContractErrors+1 {
		t.Errorf("%d contract errors, %v", len(got.ContractErrors), err)
	}
}

func TestBoundsAreThoseOfTheContract(t *testing.T) {
	if got, want := fmt.Sprint(RunBounds), "[5 10 25 50 100 250 500 1000 2000 3000 4000 5000 7500 10000 15000 20000 30000 60000 120000 300000]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
