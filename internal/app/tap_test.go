package app

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"idemscope/internal/flow"
	"idemscope/internal/lab"
)

// The tap of the demo sees its messages from the first one on.
func TestALookUpTellsWhatTheTapSaw(t *testing.T) {
	file := filepath.Join(t.TempDir(), "idemscope.yaml")
	l, err := lab.Start(t.Context(), lab.Options{Listen: "127.0.0.1:0", Prepare: makeTap(file)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Stop(); err != nil {
			t.Error(err)
		}
	})
	// A busy machine may need more than the demo's second.
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, bytes.Replace(text, []byte("actions: true"), []byte("actions: true, lookup_timeout: 20s"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	options := TapOptions{Config: file, Action: TapPlan, MaxAge: time.Hour, MaxBytes: 50_000_000, Language: flow.English, Out: &out}
	if exit, err := Tap(t.Context(), options); err != nil || exit != 0 || !strings.Contains(out.String(), "Nothing is left to do.") || strings.Contains(out.String(), "to do]") {
		t.Errorf("exit %d, %v\n%s", exit, err, &out)
	}
	out.Reset()
	if _, err := Lookup(t.Context(), LookupOptions{Config: file, Words: []string{"stock_import", "IMP-20250115-03"}, JSON: true, Language: flow.English, Out: &out}); err != nil {
		t.Fatal(err)
	}
	var answered struct {
		Tap struct {
			State  flow.State
			Events int
		}
	}
	if err := json.Unmarshal(out.Bytes(), &answered); err != nil || answered.Tap.State != flow.Found || answered.Tap.Events != 1 {
		t.Errorf("%v: %+v\n%s", err, answered, &out)
	}
	out.Reset()
	options.Action, options.Out = TapRemove, &out
	if exit, err := Tap(t.Context(), options); err != nil || exit != 0 || !strings.Contains(out.String(), "Nothing was changed") {
		t.Errorf("exit %d, %v\n%s", exit, err, &out)
	}
	out.Reset()
	options.Execute, options.Language = true, flow.Chinese
	if exit, err := Tap(t.Context(), options); err != nil || exit != 0 || !strings.Contains(out.String(), "全部完成") {
		t.Errorf("exit %d, %v\n%s", exit, err, &out)
	}
	out.Reset()
	if exit, err := Trace(t.Context(), TraceOptions{Config: file, For: time.Minute, Language: flow.English, Out: &out, Logger: slog.New(slog.DiscardHandler)}); err != nil || exit != 4 || !strings.Contains(out.String(), "+519%") {
		t.Errorf("exit %d, %v\n%s", exit, err, &out)
	}
}

func TestABrokerWithoutATapIsRefusedWithTheRemedy(t *testing.T) {
	file := filepath.Join(t.TempDir(), "idemscope.yaml")
	text := `mysql: {main: {address: "127.0.0.1:3306", database: shop, user: idemscope}}
brokers: {rabbit: {management: "http://127.0.0.1:15672", user: monitor}}
ledgers: {orders: {mysql: main, table: idempotent_record, preset: idempotent_record}}
flows: {payments: {biz_types: [order_paid], ledger: orders}}
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	for _, name := range []string{"", "rabbit", "nobody"} {
		exit, err := Tap(t.Context(), TapOptions{Config: file, Broker: name, Action: TapPlan, Out: &out})
		if err == nil || exit != 0 || !strings.Contains(err.Error(), map[string]string{
			"": "no broker has a tap", "rabbit": "add tap: {amqp: ...} to it", "nobody": `there is no broker "nobody"`,
		}[name]) {
			t.Errorf("%q: exit %d, %v", name, exit, err)
		}
	}
}
