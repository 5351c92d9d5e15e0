package console

import (
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"idemscope/internal/access"
	"idemscope/internal/action"
	"idemscope/internal/audit"
	"idemscope/internal/flow"
)

func TestAnOperatorReleasesALockFromThePageOfItsKey(t *testing.T) {
	r := newDeedRig(t)
	for _, id := range []string{"1", "", "a\x00b\xff", `<script>"'&`, "长 "} {
		r.set(t, "lock:log:"+id, "dead <worker>", 0)
		key := get(t, r.URL+keyPath("log", id))
		section := key.document(t).one(t, "section", "deeds")
		if n := len(section.all("li", "nil")); n != 3 || !strings.Contains(section.words(), "Release the lock") {
			t.Fatalf("%q: %d refused\n%s", id, n, section.words())
		}
		form := r.form(t, "release-lock", "log", id)
		if form.Get("ticket") == "" {
			t.Fatalf("%q: no form", id)
		}
		form.Set("reason", "its host is gone")
		got := r.submit(t, form)
		if got.StatusCode != http.StatusOK || !strings.Contains(got.document(t).words(), "the key was deleted") || strings.Contains(got.body, "<script>\"") {
			t.Fatalf("%q: %d\n%s", id, got.StatusCode, got.document(t).words())
		}
		if strings.Contains(got.body, "hreflang") {
			t.Errorf("%q: a language leads to an address that does not hold this page", id)
		}
		if r.redis.Exists(t.Context(), "lock:log:"+id).Val() != 0 {
			t.Errorf("%q: the lock is there", id)
		}
		// The same form once more changes nothing, and says so.
		if got := r.submit(t, form); got.StatusCode != http.StatusOK || !strings.Contains(got.body, "already_gone") {
			t.Errorf("%q: %d", id, got.StatusCode)
		}
		used := r.token(t)
		for n, status := range []int{http.StatusBadRequest, http.StatusForbidden} { // without a ticket, then sent again
			if got := r.send(t, "/action", "application/x-www-form-urlencoded", []byte(url.Values{"form_token": {used}}.Encode())); got.StatusCode != status {
				t.Errorf("%q: sent for time %d: %d", id, n+1, got.StatusCode)
			}
		}
		// It stands on the timeline of the key, and in the audit, in both languages.
		if page := get(t, r.URL+keyPath("log", id)); !strings.Contains(page.document(t).one(t, "ol", "story").words(), "action release-lock: done") {
			t.Errorf("%q: not on the timeline", id)
		}
		values := url.Values{"type": {"log"}, "id": {id}, "outcome": {"done"}}
		for lang, word := range map[string]string{"en": "Release the lock", "zh": "释放锁"} {
			values.Set("lang", lang)
			list := get(t, r.URL+"/audit?"+values.Encode()).document(t).one(t, "ol", "attempts").words()
			if !strings.Contains(list, word) || !strings.Contains(list, "alice") || !strings.Contains(list, "10.0.0.7") || !strings.Contains(list, "its host is gone") {
				t.Errorf("%q: %s", id, list)
			}
		}
		var entries AuditJSON
		if err := json.Unmarshal([]byte(get(t, r.URL+"/api/v1/audit?"+values.Encode()).body), &entries); err != nil {
			t.Fatal(err)
		}
		if len(entries.Entries) != 1 || entries.Entries[0].Who != "alice" || entries.Entries[0].Outcome != audit.Done {
			t.Errorf("%q: %+v", id, entries)
		} else if k := entries.Entries[0].Key; k.BizIDHex != "" && k.BizIDHex != hex.EncodeToString([]byte(id)) || k.BizIDHex == "" && k.BizID != id {
			t.Errorf("%q: %+v", id, k)
		}
	}
}

func TestTheDialogSaysWhatItDoesInBothLanguages(t *testing.T) {
	r := newDeedRig(t)
	r.settled(t, "pay", "pay", 0, 0)
	r.record(t, "record", "pay", "1", 1, time.Hour)
	r.set(t, "lock:pay:2", "v", 0)
	for _, kind := range action.Kinds {
		for _, id := range []string{"1", "2", "nowhere"} {
			for _, lang := range []string{"en", "zh"} {
				got := get(t, r.URL+"/action?"+url.Values{"kind": {string(kind)}, "type": {"pay"}, "id": {id}, "lang": {lang}}.Encode())
				words := got.document(t).words()
				if got.StatusCode != http.StatusOK || !strings.Contains(words, kind.Word().In(flow.Language(lang))) || strings.Contains(words, "%!") {
					t.Errorf("%s %s %s: %d %s", kind, id, lang, got.StatusCode, words)
				}
			}
		}
	}
	words := get(t, r.URL+"/action?kind=reset-record&type=pay&id=1").document(t).words()
	for _, want := range []string{"UPDATE", "status 1 becomes 3", "no message is sent", "Type the biz_id once more"} {
		if !strings.Contains(words, want) {
			t.Errorf("no %q in %s", want, words)
		}
	}
	// A viewer sees all that, and no form.
	r.person = access.Person{Name: "eve", Roles: []access.Role{access.Viewer}}
	page := get(t, r.URL+"/action?kind=reset-record&type=pay&id=1").document(t)
	if len(page.all("form", "deed-form")) != 0 || !strings.Contains(page.words(), "takes the role operator") {
		t.Errorf("%s", page.words())
	}
}

func TestWhatCannotBeCalledBackWantsTheIDOnceMore(t *testing.T) {
	r := newDeedRig(t)
	r.settled(t, "pay", "pay", 0, 0)
	r.record(t, "record", "pay", " 7\n", 1, time.Hour)
	form := r.form(t, "reset-record", "pay", " 7\n")
	form.Set("reason", "dead")
	for _, typed := range []string{"", "7", "8"} {
		form.Set("typed", typed)
		got := r.submit(t, form)
		if got.StatusCode != http.StatusBadRequest || !strings.Contains(got.document(t).words(), "The id that was typed is not that of this key") {
			t.Errorf("%q: %d", typed, got.StatusCode)
		}
	}
	page, err := r.log.Read(t.Context(), audit.Query{Outcome: audit.Refused})
	if err != nil || len(page.Entries) != 3 || page.Entries[0].Who != "alice" {
		t.Errorf("%+v %v", page, err)
	}
	form.Set("typed", flow.Visible(" 7\n"))
	if got := r.submit(t, form); got.StatusCode != http.StatusOK || !strings.Contains(got.body, "the record was set back") {
		t.Errorf("%d %s", got.StatusCode, got.document(t).words())
	}
}

// Every refusal, through the API: the precheck says it, and the order is refused.
func TestEveryRefusalThroughTheAPI(t *testing.T) {
	r := newDeedRig(t)
	r.settled(t, "pay", "pay", 0, 0)
	r.settled(t, "lim", "limited.dlq", 0, 0)
	r.settled(t, "str", "stream.dlq", 0, 0)
	redisDo := func(args ...any) {
		t.Helper()
		if err := r.redis.Do(t.Context(), args...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	redisDo("HSET", "lock:pay:hash", "f", "v")
	redisDo("SET", "lock:pay:long", strings.Repeat("v", 5000))
	redisDo("SET", "shared:1", "v")
	redisDo("SET", "lock:pay:young", "v")
	redisDo("SET", "lock:folded:abc", "v")
	redisDo("SET", "marker:pay:done", "1")
	redisDo("SET", "marker:pay:marked", "1")
	redisDo("SET", "lock:pay:locked", "v")
	r.record(t, "record", "pay", "young", 1, time.Minute)
	r.record(t, "folded", "folded", "ABC", 1, time.Hour)
	r.record(t, "record", "pay", "done", 2, time.Hour)
	r.record(t, "record", "pay", "locked", 1, time.Hour)
	r.record(t, "record", "pay", "stale", 1, time.Hour)
	r.record(t, "record", "pay", "odd", 9, time.Hour)
	r.record(t, "record", "pay", "twice", 1, time.Hour)
	r.record(t, "record", "pay", "twice", 1, time.Hour)
	r.record(t, "record", "payout", "1", 1, time.Hour)
	r.db.Exec(t, "INSERT INTO logged VALUES ('1', UTC_TIMESTAMP())")
	for _, c := range []struct{ kind, bizType, id, code string }{
		{"release-lock", "pay", "hash", "foreign_type"},
		{"release-lock", "pay", "long", "value_cut"},
		{"release-lock", "a", "1", "ambiguous_owner"},
		{"release-lock", "pay", "young", "holder_alive"},
		{"release-lock", "folded", "abc", "key_ambiguous"},
		{"release-lock", "bare", "1", "no_lock"},
		{"clear-marker", "pay", "done", "completed"},
		{"clear-marker", "bare", "1", "no_marker"},
		{"reset-record", "pay", "locked", "lock_held"},
		{"reset-record", "pay", "young", "not_stale"},
		{"reset-record", "pay", "done", "completed"},
		{"reset-record", "pay", "twice", "several_rows"},
		{"reset-record", "payout", "1", "rerun_never"},
		{"reset-record", "log", "1", "no_status"},
		{"replay", "pay", "done", "completed"},
		{"replay", "pay", "stale", "processing"},
		{"replay", "pay", "odd", "unreadable"},
		{"replay", "pay", "marked", "marker_blocks"},
		{"replay", "pay", "locked", "lock_held"},
		{"replay", "payout", "2", "rerun_never"},
		{"replay", "bare", "1", "no_dead_letter_queue"},
		{"replay", "lim", "1", "delivery_limit"},
		{"replay", "str", "1", "stream_queue"},
		{"replay", "pay", "nowhere", "not_found"},
	} {
		r.refused(t, c.kind, c.bizType, c.id, c.code)
	}
	// Deliveries that are out, and layers that do not answer.
	if err := r.ch.PublishWithContext(t.Context(), "", "pay", false, false, amqp.Publishing{Body: []byte("{}")}); err != nil {
		t.Fatal(err)
	}
	r.settled(t, "pay", "pay", 1, 0)
	if _, ok, err := r.ch.Get("pay", false); err != nil || !ok {
		t.Fatal(err)
	}
	r.settled(t, "pay", "pay", 0, 1)
	r.refused(t, "reset-record", "pay", "stale", "unacked")
	for name, kinds := range map[string][]string{"rabbit": {"reset-record", "replay"}, "redis": {"release-lock", "clear-marker", "reset-record", "replay"}, "mysql": {"release-lock", "clear-marker", "reset-record", "replay"}} {
		r.proxies[name].Drop(true)
		for _, kind := range kinds {
			r.refused(t, kind, "pay", "stale", "layer_unread")
		}
		r.proxies[name].Drop(false)
	}
}

// refused checks precheck and order of one action.
func (r *deedRig) refused(t *testing.T, kind, bizType, id, code string) {
	t.Helper()
	status, _, pre := r.api(t, kind, actionOrder{Type: bizType, ID: id})
	if code != "not_found" && (status != http.StatusOK || pre.Allowed || !strings.Contains(refusalCodes(pre.Refusals), code)) {
		t.Errorf("%s %s %s: precheck %d allowed %v, refused for %s", kind, bizType, id, status, pre.Allowed, refusalCodes(pre.Refusals))
	}
	status, got, _ := r.api(t, kind, actionOrder{Type: bizType, ID: id, Reason: "because", Ticket: pre.Ticket, Execute: true})
	if status != http.StatusConflict || got.Outcome != audit.Refused || !strings.Contains(refusalCodes(got.Refusals), code) || got.Why == "" {
		t.Errorf("%s %s %s: %d %s %s, want %s", kind, bizType, id, status, got.Outcome, refusalCodes(got.Refusals), code)
	}
}

func TestOrdersThroughTheAPI(t *testing.T) {
	r := newDeedRig(t)
	r.settled(t, "pay", "pay", 0, 0)
	// What changed since the precheck is told.
	r.set(t, "lock:log:1", "mine", 0)
	_, _, pre := r.api(t, "release-lock", actionOrder{Type: "log", ID: "1"})
	r.set(t, "lock:log:1", "other", 0)
	status, got, _ := r.api(t, "release-lock", actionOrder{Type: "log", ID: "1", Reason: "because", Ticket: pre.Ticket, Execute: true})
	if status != http.StatusConflict || got.Code != "changed" || !strings.Contains(got.Why, "now held by other") {
		t.Errorf("%d %+v", status, got)
	}
	// Without a ticket, what is there now is acted on.
	status, got, _ = r.api(t, "release-lock", actionOrder{Type: "log", ID: "1", Reason: "because", Execute: true})
	if status != http.StatusOK || got.Outcome != audit.Done || got.Now == nil || got.Now.Lock.State != flow.Absent {
		t.Errorf("%d %+v", status, got)
	}
	// An id that is no text.
	r.set(t, "lock:log:\xff", "v", 0)
	status, got, _ = r.api(t, "release-lock", actionOrder{Type: "log", IDHex: "ff", Reason: "because", Execute: true})
	if status != http.StatusOK || got.Outcome != audit.Done || got.Key.BizIDHex != "ff" || r.redis.Exists(t.Context(), "lock:log:\xff").Val() != 0 {
		t.Errorf("%d %+v", status, got)
	}
	// A dead letter.
	if err := r.ch.PublishWithContext(t.Context(), "", "pay.dlq", false, false, amqp.Publishing{Body: []byte(`{"biz_id":"7"}`)}); err != nil {
		t.Fatal(err)
	}
	r.settled(t, "pay", "pay.dlq", 1, 0)
	status, got, _ = r.api(t, "replay", actionOrder{Type: "pay", ID: "7", Reason: "because", Execute: true})
	if status != http.StatusOK || got.Outcome != audit.Done || !strings.Contains(got.After, "x-replay-id") {
		t.Errorf("%d %+v", status, got)
	}
	other := pre.Ticket
	for what, c := range map[string]struct {
		kind, contentType, body string
		status                  int
		headers                 []string
	}{
		"no such action":   {"drop-table", "application/json", `{}`, http.StatusNotFound, nil},
		"a form":           {"release-lock", "application/x-www-form-urlencoded", `type=log&id=1`, http.StatusBadRequest, nil},
		"no JSON":          {"release-lock", "application/json", `{`, http.StatusBadRequest, nil},
		"an unknown field": {"release-lock", "application/json", `{"type":"log","id":"1","force":true}`, http.StatusBadRequest, nil},
		"odd hex":          {"release-lock", "application/json", `{"type":"log","id_hex":"f"}`, http.StatusBadRequest, nil},
		"an unknown type":  {"release-lock", "application/json", `{"type":"nobody","id":"1"}`, http.StatusNotFound, nil},
		"no ticket":        {"release-lock", "application/json", `{"type":"log","id":"1","reason":"r","execute":true,"ticket":"x"}`, http.StatusBadRequest, nil},
		"another's ticket": {"release-lock", "application/json", `{"type":"log","id":"2","reason":"r","execute":true,"ticket":"` + other + `"}`, http.StatusBadRequest, nil},
		"another's action": {"clear-marker", "application/json", `{"type":"log","id":"1","reason":"r","execute":true,"ticket":"` + other + `"}`, http.StatusBadRequest, nil},
		"no reason":        {"release-lock", "application/json", `{"type":"log","id":"1","execute":true}`, http.StatusBadRequest, nil},
		"another site":     {"release-lock", "application/json", `{"type":"log","id":"1"}`, http.StatusForbidden, []string{"Sec-Fetch-Site", "cross-site"}},
		"another origin":   {"release-lock", "application/json", `{"type":"log","id":"1"}`, http.StatusForbidden, []string{"Origin", "https://evil.example"}},
		"much too much":    {"release-lock", "application/json", `{"type":"log","id":"` + strings.Repeat("x", maxForm) + `"}`, http.StatusBadRequest, nil},
		"only a precheck":  {"release-lock", "application/json", `{"type":"log","id":"1"}`, http.StatusOK, nil},
		"with its charset": {"release-lock", "application/json; charset=utf-8", `{"type":"log","id":"1"}`, http.StatusOK, nil},
	} {
		if got := r.send(t, "/api/v1/actions/"+c.kind, c.contentType, []byte(c.body), c.headers...); got.StatusCode != c.status {
			t.Errorf("%s: %d, want %d\n%s", what, got.StatusCode, c.status, got.body)
		}
	}
}

func TestWhoMayNotActChangesNothingThroughAnyDoor(t *testing.T) {
	r := newDeedRig(t)
	r.set(t, "lock:log:1", "v", 0)
	form := r.form(t, "release-lock", "log", "1")
	form.Set("reason", "because")
	if got := r.submit(t, form, "Sec-Fetch-Site", "cross-site"); got.StatusCode != http.StatusForbidden {
		t.Errorf("another site: %d", got.StatusCode)
	}
	for _, p := range []access.Person{{}, {Name: "eve", Roles: []access.Role{access.Viewer, access.Payload}}} {
		r.person = p
		want := http.StatusForbidden
		if p.Name == "" {
			want = http.StatusUnauthorized
		}
		if got := r.submit(t, form); got.StatusCode != want {
			t.Errorf("%q by form: %d", p.Name, got.StatusCode)
		}
		if status, _, _ := r.api(t, "release-lock", actionOrder{Type: "log", ID: "1", Reason: "because", Execute: true}); status != want {
			t.Errorf("%q by API: %d", p.Name, status)
		}
		page, err := r.log.Read(t.Context(), audit.Query{Outcome: audit.Refused})
		if err != nil || len(page.Entries) < 2 || page.Entries[0].Who != p.Name || page.Entries[1].Who != p.Name || page.Entries[0].Action != "POST /api/v1/actions/release-lock" {
			t.Errorf("%q: %+v, %v", p.Name, page.Entries, err)
		}
	}
	r.person = operator
	for what, values := range map[string]url.Values{"nothing": {}, "no ticket": {"reason": {"x"}}, "a bad ticket": {"ticket": {"x"}, "reason": {"x"}}} {
		if got := r.submit(t, values); got.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %d", what, got.StatusCode)
		}
	}
	for path, status := range map[string]int{"/action?kind=x&type=log&id=1": 404, "/action?kind=release-lock&type=log": 400, "/action?kind=release-lock&type=nobody&id=1": 404, "/action?type=log&id=1": 404} {
		if got := get(t, r.URL+path); got.StatusCode != status {
			t.Errorf("%s: %d", path, got.StatusCode)
		}
	}
	if r.redis.Get(t.Context(), "lock:log:1").Val() != "v" {
		t.Error("the lock is gone")
	}
}

func TestWithoutActionsThereIsNoDoor(t *testing.T) {
	server := serve(t, shop(t))
	if page := get(t, server.URL+keyPath("order_paid", orderNo)).document(t); len(page.all("section", "deeds")) != 0 {
		t.Error("actions are offered")
	}
	if got := get(t, server.URL+"/action?kind=release-lock&type=order_paid&id=1"); got.StatusCode != http.StatusForbidden {
		t.Errorf("%d", got.StatusCode)
	}
	for _, path := range []string{"/action", "/api/v1/actions/release-lock"} {
		if got := ask(t, http.MethodPost, server.URL+path); got.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %d", path, got.StatusCode)
		}
	}
	if got := get(t, server.URL+"/audit"); got.StatusCode != http.StatusNotFound {
		t.Errorf("%d", got.StatusCode)
	}
}
