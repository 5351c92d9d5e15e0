package console

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/semaphore"

	"idemscope/internal/access"
	"idemscope/internal/action"
	"idemscope/internal/audit"
	"idemscope/internal/flow"
)

// selectionOf names keys of one flow as a list of findings does.
func selectionOf(flowName, bizType string, ids ...string) url.Values {
	values := url.Values{}
	for _, id := range ids {
		values.Add("place", flow.Place{Flow: flowName, Key: flow.Key{BizType: bizType, BizID: id}}.Encode())
	}
	return values
}

// preview opens the preview of a selection, and returns what its form would send.
func (r *deedRig) preview(t *testing.T, selected url.Values) (page reply, form url.Values) {
	t.Helper()
	page = get(t, r.URL+"/findings/preview?"+selected.Encode())
	if page.StatusCode != http.StatusOK {
		t.Fatalf("%d\n%s", page.StatusCode, page.document(t).words())
	}
	return page, manyForm(t, page)
}

func manyForm(t *testing.T, page reply) url.Values {
	t.Helper()
	form := url.Values{}
	for _, f := range page.document(t).all("form", "many") {
		for _, input := range f.all("input", "") {
			name, _ := attribute(input.Node, "name")
			value, _ := attribute(input.Node, "value")
			form.Add(name, value)
		}
	}
	return form
}

// act sends a form of the preview, with what a person types into it.
func (r *deedRig) act(t *testing.T, form url.Values, reason, typed string) reply {
	t.Helper()
	form.Set("reason", reason)
	form.Set("typed", typed)
	return r.send(t, "/findings/act", "application/x-www-form-urlencoded", []byte(form.Encode()))
}

func (r *deedRig) statusOf(t *testing.T, id string) (status int) {
	t.Helper()
	if err := r.db.DB.Get(&status, "SELECT status FROM record WHERE biz_id = ?", id); err != nil {
		t.Fatal(err)
	}
	return status
}

// The weekly round: records that are stuck in processing are set back together, and
// the one that came alive since the preview is left alone.
func TestOneOfManyKeysChangedSinceThePreviewAndIsRefusedAlone(t *testing.T) {
	r := newDeedRig(t)
	r.settled(t, "pay", "pay", 0, 0)
	for _, id := range []string{"1", "2 ", "", "gone"} {
		r.record(t, "record", "pay", id, 1, time.Hour)
	}
	r.record(t, "record", "pay", "young", 1, time.Minute)
	selected := selectionOf("payments", "pay", "1", "2 ", "", "gone", "young", "nowhere", "1")
	page, form := r.preview(t, selected)
	words := page.document(t).words()
	for _, want := range []string{"4 of 6 can be acted on now", "it is stale only after", "status 1 becomes 3 (failed)", "UPDATE", "nothing to do", "there is no record", "Type how many keys are ticked"} {
		if !strings.Contains(words, want) {
			t.Errorf("no %q in %s", want, words)
		}
	}
	if n := len(form["ticket"]); n != 4 {
		t.Fatalf("%d tickets", n)
	}
	// A wrong number, or no reason: nothing is changed, and the form comes back with what was typed.
	for typed, reason := range map[string]string{"6": "stuck since the crash", "": "stuck since the crash", "4": " "} {
		got := r.act(t, form, reason, typed)
		if got.StatusCode != http.StatusBadRequest || !strings.Contains(got.body, "nothing was changed") || r.statusOf(t, "1") != 1 {
			t.Fatalf("%q %q: %d\n%s", typed, reason, got.StatusCode, got.document(t).words())
		}
		if form = manyForm(t, got); len(form["ticket"]) != 4 || form.Get("reason") != reason {
			t.Fatalf("%q %q: %v", typed, reason, form)
		}
	}
	r.db.Exec(t, "UPDATE record SET update_time = UTC_TIMESTAMP(6) - INTERVAL 20 MINUTE WHERE biz_id = '2 '")
	r.db.Exec(t, "DELETE FROM record WHERE biz_id = 'gone'")
	got := r.act(t, form, "stuck since the crash", " 4 ")
	made := got.document(t)
	if got.StatusCode != http.StatusMultiStatus {
		t.Errorf("%d\n%s", got.StatusCode, made.words())
	}
	if counts := made.one(t, "ul", "counts").words(); counts != "2 done 1 nothing to do 1 refused 0 failed" {
		t.Errorf("%q", counts)
	}
	if a, b, c, d := r.statusOf(t, "1"), r.statusOf(t, "2 "), r.statusOf(t, ""), r.statusOf(t, "young"); a != 3 || b != 1 || c != 3 || d != 1 {
		t.Errorf("%d %d %d %d", a, b, c, d)
	}
	if !strings.Contains(made.words(), "refused changed pay / 2␣") {
		t.Errorf("%s", made.words())
	}
	// Each has its own attempt, and the refused one can be looked at again by itself.
	for outcome, want := range map[audit.Outcome][]string{audit.Done: {"", "1"}, audit.Nothing: {"gone"}, audit.Refused: {"", "", "", "2 "}} {
		entries, err := r.log.Read(t.Context(), audit.Query{Outcome: outcome})
		var ids []string
		for _, e := range entries.Entries {
			ids = append(ids, e.Place.Key.BizID)
		}
		slices.Sort(ids)
		if err != nil || !slices.Equal(ids, want) {
			t.Errorf("%s: %q %v", outcome, ids, err)
		}
	}
	again := ""
	for _, link := range made.all("a", "") {
		if href, _ := attribute(link.Node, "href"); strings.Contains(href, "preview") {
			again = href
		}
	}
	u, err := url.Parse(again)
	if err != nil || u.Query().Get("kind") != "reset-record" || !slices.Equal(u.Query()["place"], selectionOf("payments", "pay", "2 ")["place"]) {
		t.Errorf("%q %v", again, err)
	}
	if _, form = r.preview(t, u.Query()); len(form["ticket"]) != 1 {
		t.Errorf("%v", form)
	}
}

// A selection that is too long for an address goes by POST, with any bytes; so many
// keys are taken, and it is said that there are more.
func TestMoreKeysThanOneOrderTakes(t *testing.T) {
	r := newDeedRig(t)
	ids := []string{"", "a\x00b\xff", `<script>"'&`, strings.Repeat("长", 20)}
	for len(ids) < maxKeys+7 {
		ids = append(ids, fmt.Sprintf("%050d", len(ids)))
	}
	for _, id := range ids {
		r.set(t, "lock:log:"+id, "dead", 0)
	}
	selected := selectionOf("logged", "log", ids...)
	selected.Set("kind", "release-lock")
	page := r.send(t, "/findings/preview?lang=zh", "application/x-www-form-urlencoded", []byte(selected.Encode()))
	words := page.document(t).words()
	if page.StatusCode != http.StatusOK || !strings.Contains(words, "另有 7 个选中的键未列出") || !strings.Contains(words, "100 个中有 100 个目前可以执行") || strings.Contains(page.body, `<script>"`) {
		t.Fatalf("%d\n%.3000s", page.StatusCode, words)
	}
	if method, _ := attribute(page.document(t).one(t, "form", "many-kinds").Node, "method"); method != "post" {
		t.Errorf("the selection goes by %s", method)
	}
	form := manyForm(t, page)
	over := url.Values{"form_token": form["form_token"], "reason": {"x"}, "ticket": append(slices.Clone(form["ticket"]), "one more")}
	if got := r.send(t, "/findings/act", "application/x-www-form-urlencoded", []byte(over.Encode())); got.StatusCode != http.StatusBadRequest || !strings.Contains(got.body, "The order names 101 keys") {
		t.Errorf("%d", got.StatusCode)
	}
	if got := r.act(t, form, "x", ""); got.StatusCode != http.StatusForbidden {
		t.Errorf("a form that was sent before: %d", got.StatusCode)
	}
	form["form_token"] = []string{r.token(t)}
	got := r.act(t, form, "dead hosts", "")
	if counts := got.document(t).one(t, "ul", "counts").words(); got.StatusCode != http.StatusOK || counts != "100 done 0 nothing to do 0 refused 0 failed" {
		t.Errorf("%d %s", got.StatusCode, counts)
	}
	if left := len(r.redis.Keys(t.Context(), "lock:log:*").Val()); left != 7 {
		t.Errorf("%d locks are left", left)
	}
}

func TestSelectionsThatAreNotTaken(t *testing.T) {
	r := newDeedRig(t)
	r.set(t, "lock:log:1", "v", 0)
	for query, status := range map[string]int{
		"":                         http.StatusBadRequest,
		"place=x":                  http.StatusBadRequest,
		"kind=replay&place=x":      http.StatusBadRequest,
		"kind=drop-table&place=x":  http.StatusNotFound,
		"kind=release-lock&place=": http.StatusBadRequest,
	} {
		if got := get(t, r.URL+"/findings/preview?"+query); got.StatusCode != status {
			t.Errorf("%q: %d", query, got.StatusCode)
		}
	}
	// A flow that is not configured any more refuses its key alone.
	selected := selectionOf("logged", "log", "1")
	selected["place"] = append(selected["place"], selectionOf("nobody", "log", "1")["place"]...)
	selected.Set("kind", "release-lock")
	page, form := r.preview(t, selected)
	if len(form["ticket"]) != 1 || !strings.Contains(page.document(t).words(), "1 of 2 can be acted on now") {
		t.Errorf("%s", page.document(t).words())
	}
	for what, tickets := range map[string][]string{"none": nil, "not one": {"x"}, "twice the same": {form.Get("ticket"), form.Get("ticket")}} {
		values := url.Values{"reason": {"x"}, "ticket": tickets, "form_token": {r.token(t)}}
		if got := r.send(t, "/findings/act", "application/x-www-form-urlencoded", []byte(values.Encode())); got.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %d", what, got.StatusCode)
		}
	}
	// Who only looks sees what would be done, and no form.
	r.person = access.Person{Name: "eve", Roles: []access.Role{access.Viewer}}
	page, sent := r.preview(t, selected)
	if len(sent) != 0 || len(page.document(t).all("input", "")) == 0 || !strings.Contains(page.document(t).words(), "takes the role operator") {
		t.Errorf("%v %s", sent, page.document(t).words())
	}
	if got := r.act(t, form, "x", ""); got.StatusCode != http.StatusForbidden {
		t.Errorf("%d", got.StatusCode)
	}
	if got := r.many(t, manyOrder{Action: "release-lock", Keys: []keyOrder{{Type: "log", ID: "1"}}, Reason: "x", Execute: true}); got.StatusCode != http.StatusForbidden {
		t.Errorf("%d", got.StatusCode)
	}
	if r.redis.Exists(t.Context(), "lock:log:1").Val() != 1 {
		t.Error("the lock is gone")
	}
}

// many posts an order about many keys.
func (r *deedRig) many(t *testing.T, o manyOrder) reply {
	t.Helper()
	body, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return r.send(t, "/api/v1/actions", "application/json", body)
}

func TestManyKeysThroughTheAPI(t *testing.T) {
	r := newDeedRig(t)
	for _, id := range []string{"1", "2", "\xff"} {
		r.set(t, "lock:log:"+id, "dead", 0)
	}
	o := manyOrder{Action: "release-lock", Keys: []keyOrder{{Type: "log", ID: "1"}, {Type: "log", ID: "2"}, {Type: "log", IDHex: "ff"}, {Type: "bare", ID: "1"}, {Type: "log", ID: "nowhere"}}}
	var pre ManyPrecheckJSON
	got := r.many(t, o)
	if err := json.Unmarshal([]byte(got.body), &pre); err != nil || got.StatusCode != http.StatusOK || pre.Counts != (ManyPrecheckCounts{Allowed: 3, Nothing: 1, Refused: 1}) {
		t.Fatalf("%d %v\n%s", got.StatusCode, err, got.body)
	}
	for i := range o.Keys {
		o.Keys[i].Ticket = pre.Keys[i].Ticket
	}
	r.set(t, "lock:log:2", "alive", 0)
	o.Execute, o.Reason = true, "because"
	var made ManyResultJSON
	got = r.many(t, o)
	if err := json.Unmarshal([]byte(got.body), &made); err != nil || got.StatusCode != http.StatusMultiStatus || made.Counts != (ManyResultCounts{Done: 2, Nothing: 1, Refused: 2}) {
		t.Fatalf("%d %v\n%s", got.StatusCode, err, got.body)
	}
	if a, b := made.Keys[1], made.Keys[2]; a.Code != "changed" || b.Code != "done" || b.Key.BizIDHex != "ff" {
		t.Errorf("%+v %+v", a, b)
	}
	// Without a ticket, what is there now is acted on; with the same outcome for all, the status is that.
	got = r.many(t, manyOrder{Action: "release-lock", Keys: []keyOrder{{Type: "log", ID: "2"}}, Reason: "because", Execute: true})
	if got.StatusCode != http.StatusOK || r.redis.Exists(t.Context(), "lock:log:2").Val() != 0 {
		t.Errorf("%d %s", got.StatusCode, got.body)
	}
	one := keyOrder{Type: "log", ID: "1"}
	for what, c := range map[string]struct {
		order  manyOrder
		status int
		code   string
	}{
		"no action":        {manyOrder{Keys: []keyOrder{one}}, 404, "no_such_action"},
		"one by one":       {manyOrder{Action: "replay", Keys: []keyOrder{one}}, 400, "one_by_one"},
		"no key":           {manyOrder{Action: "release-lock"}, 400, "nothing_selected"},
		"too many":         {manyOrder{Action: "release-lock", Keys: slices.Repeat([]keyOrder{one}, maxKeys+1)}, 400, "too_many_keys"},
		"twice":            {manyOrder{Action: "release-lock", Keys: []keyOrder{one, one}}, 400, "key_twice"},
		"odd hex":          {manyOrder{Action: "release-lock", Keys: []keyOrder{{Type: "log", IDHex: "f"}}}, 400, "bad_order"},
		"unknown type":     {manyOrder{Action: "release-lock", Keys: []keyOrder{one, {Type: "nobody"}}}, 404, "unknown_biz_type"},
		"another's ticket": {manyOrder{Action: "clear-marker", Keys: []keyOrder{{Type: "log", ID: "1", Ticket: pre.Keys[0].Ticket}}, Execute: true}, 400, "bad_ticket"},
		"no reason":        {manyOrder{Action: "release-lock", Keys: []keyOrder{one}, Execute: true}, 400, "reason_missing"},
	} {
		if got := r.many(t, c.order); got.StatusCode != c.status || !strings.Contains(got.body, `"`+c.code+`"`) {
			t.Errorf("%s: %d %s", what, got.StatusCode, got.body)
		}
	}
	if got := r.send(t, "/api/v1/actions", "application/json", []byte(`{"action":"release-lock","keys":[],"force":true}`)); got.StatusCode != http.StatusBadRequest {
		t.Errorf("%d", got.StatusCode)
	}
}

// No more hands than maxHands at once, and none begins after the visitor has left.
func TestHands(t *testing.T) {
	c := &console{hands: semaphore.NewWeighted(maxHands)}
	ctx, leave := context.WithCancel(t.Context())
	var now, most, all atomic.Int32
	full, goOn := make(chan struct{}), make(chan struct{})
	ended := make(chan []action.Result)
	go func() {
		ended <- c.doMany(ctx, 20, func(_ context.Context, i int) action.Result {
			if n := now.Add(1); n > most.Load() {
				most.Store(n)
			}
			if all.Add(1) == maxHands {
				close(full)
			}
			<-goOn
			now.Add(-1)
			return action.Result{Outcome: audit.Done}
		}, func(i int) action.Result { return action.Result{Place: flow.Place{Flow: fmt.Sprint(i)}} })
	}()
	<-full
	leave()
	close(goOn)
	results := <-ended
	done := countOutcomes(results)[audit.Done]
	if most.Load() > maxHands || done < maxHands || done > 2*maxHands || int(all.Load()) != done || now.Load() != 0 {
		t.Errorf("%d at once, %d done, %d begun", most.Load(), done, all.Load())
	}
	for i, r := range results[done:] {
		if r.Outcome != audit.Refused || r.Code != "not_begun" || r.Place.Flow != fmt.Sprint(done+i) || r.Why.Empty() {
			t.Errorf("%+v", r)
		}
	}
}
