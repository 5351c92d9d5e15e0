package console

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"idemscope/internal/access"
	"idemscope/internal/audit"
	"idemscope/internal/flow"
)

// auditConsole serves a journal, and traces that may be armed.
func auditConsole(t *testing.T, log *audit.Log, traces Traces) string {
	t.Helper()
	o := shop(t)
	o.Audit, o.Traces, o.Actions = log, traces, true
	return serve(t, o).URL
}

func openAudit(t *testing.T) *audit.Log {
	t.Helper()
	log, err := audit.Open(filepath.Join(t.TempDir(), "audit.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return log
}

func TestTheAuditPagesBackAndNarrows(t *testing.T) {
	log := openAudit(t)
	address := auditConsole(t, log, nil)
	if page := get(t, address+"/audit").document(t); !strings.Contains(page.words(), "Nothing was tried yet.") {
		t.Errorf("%s", page.words())
	}
	for i := range 7 {
		e := audit.Entry{
			At: readAt.Add(time.Duration(i) * time.Minute), Attempt: fmt.Sprint("n", i), Who: "alice", Action: "release-lock", Outcome: audit.Done, Reason: "<b>because</b>",
			Place: flow.Place{Flow: "payments", Key: flow.Key{BizType: "order_paid", BizID: fmt.Sprint(i % 2)}},
		}
		if i == 3 {
			e.Who, e.Action, e.Outcome, e.Place, e.Why = "bob", "trace-arm", audit.Refused, flow.Place{}, flow.T("no", "不")
		}
		if err := log.Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	seen, path := []string{}, "/api/v1/audit?limit=3"
	for path != "" {
		var j AuditJSON
		if err := json.Unmarshal([]byte(get(t, address+path).body), &j); err != nil {
			t.Fatal(err)
		}
		for _, e := range j.Entries {
			seen = append(seen, e.Attempt)
		}
		path = strings.Replace(j.Next, "../../", "/", 1)
	}
	if strings.Join(seen, " ") != "n6 n5 n4 n3 n2 n1 n0" {
		t.Errorf("%v", seen)
	}
	for query, want := range map[string]int{"": 7, "who=bob": 1, "action=release-lock": 6, "outcome=refused": 1, "type=order_paid&id=1": 2, "flow=payments": 6, "who=carol": 0, "limit=2": 2} {
		page := get(t, address+"/audit?"+query)
		if n := len(page.document(t).all("li", "attempt")); page.StatusCode != http.StatusOK || n != want {
			t.Errorf("%s: %d, %d", query, page.StatusCode, n)
		}
		if strings.Contains(page.body, "<b>because") {
			t.Errorf("%s: not escaped", query)
		}
	}
	for _, query := range []string{"after=x", "after=7", "limit=0", "limit=x", "type=order_paid", "id=1", "who=a&who=b"} {
		if got := get(t, address+"/audit?"+query); got.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %d", query, got.StatusCode)
		}
	}
	// A torn line is said, and the rest is shown.
	f, err := os.OpenFile(log.Path(), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(f, `{"at":`)
	_ = f.Close()
	if page := get(t, address+"/audit").document(t); !strings.Contains(page.words(), "1 lines of the file are no entries") || len(page.all("li", "attempt")) != 7 {
		t.Errorf("%s", page.words())
	}
	bad, err := audit.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if got := get(t, auditConsole(t, bad, nil)+"/audit"); got.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("%d", got.StatusCode)
	}
}

func TestArmingATraceIsKeptAndNeedsTheRight(t *testing.T) {
	log, a := openAudit(t), idleTrace()
	o := Options{Desk: noDesk{}, Flows: []flow.Flow{{Name: "payments"}}, Traces: a, Actions: true, Audit: log}
	rig := &deedRig{person: operator}
	rig.serve(t, o)
	send := func(r *deedRig) int {
		form := maps.Clone(armForm)
		form.Set("form_token", r.token(t))
		return r.send(t, "/trace", "application/x-www-form-urlencoded", []byte(form.Encode())).StatusCode
	}
	arm := func() int { return send(rig) }
	outcomes := func() (list []string) {
		page, err := log.Read(t.Context(), audit.Query{})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page.Entries {
			list = append(list, e.Who+" "+e.Action+" "+string(e.Outcome)+" "+e.Before)
		}
		return list
	}
	if status := arm(); status != http.StatusSeeOther || len(a.armed) != 1 {
		t.Errorf("%d", status)
	}
	if got := outcomes(); len(got) != 2 || got[0] != "alice trace-arm done rabbit" || got[1] != "alice trace-arm begun rabbit" {
		t.Errorf("%q", got)
	}
	refused := flow.T("somebody else traces", "他人正在追踪")
	a.refuse = &refused
	if status := arm(); status != http.StatusConflict || outcomes()[0] != "alice trace-arm failed rabbit" {
		t.Errorf("%d %q", status, outcomes())
	}
	rig.person = access.Person{Name: "eve", Roles: []access.Role{access.Viewer}}
	if status := arm(); status != http.StatusForbidden || len(a.armed) != 2 || outcomes()[0] != "eve POST /trace refused " {
		t.Errorf("%d %q", status, outcomes())
	}
	// What cannot be kept is not done.
	full, err := audit.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	o.Audit = full
	other := &deedRig{person: operator}
	other.serve(t, o)
	if status := send(other); status != http.StatusServiceUnavailable || len(a.armed) != 2 {
		t.Errorf("%d, armed %v", status, a.armed)
	}
}
