package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"idemscope/internal/flow"
)

// The test binary is also another process that writes.
func TestMain(m *testing.M) {
	if path := os.Getenv("AUDIT_NO_ROOM"); path != "" {
		os.Exit(writeWithoutRoom(path))
	}
	if path := os.Getenv("AUDIT_WRITER"); path != "" {
		l := &Log{path: path}
		for i := range 100 {
			if err := l.Append(context.Background(), entry(fmt.Sprint(os.Getpid(), "-", i), "1")); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// writeWithoutRoom appends an entry of which only the first bytes find room in the
// file, and returns 0 when that is an error.
func writeWithoutRoom(path string) int {
	info, err := os.Stat(path)
	if err != nil {
		return 2
	}
	signal.Ignore(syscall.SIGXFSZ)
	room := uint64(info.Size()) + 40
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: room, Max: room}); err != nil {
		return 3
	}
	if err := (&Log{path: path}).Append(context.Background(), entry("torn", "1")); err == nil {
		return 4
	}
	return 0
}

var at = time.Date(2026, 11, 30, 9, 0, 0, 123456789, time.UTC)

func entry(attempt, id string) Entry {
	return Entry{
		At: at, Attempt: attempt, Who: "alice", From: "10.0.0.7", Action: "release-lock",
		Place: flow.Place{Flow: "payments", Key: flow.Key{BizType: "order_paid", BizID: id}}, Reason: "holder is dead",
		Outcome: Done, Why: flow.T("deleted", "已删除"), Before: "value a", After: "absent",
	}
}

func open(t *testing.T) *Log {
	t.Helper()
	l, err := Open(filepath.Join(t.TempDir(), "audit.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func add(t *testing.T, l *Log, entries ...Entry) {
	t.Helper()
	for _, e := range entries {
		if err := l.Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
}

func read(t *testing.T, l *Log, q Query) Page {
	t.Helper()
	page, err := l.Read(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return page
}

func TestEveryByteOfAnEntryComesBack(t *testing.T) {
	l := open(t)
	var want []Entry
	for _, id := range []string{"", "1", "a\x00b", "\xff\xfe", "line\nend\r", "\u2028", `"quoted"\`, strings.Repeat("长", 20_000), "<script>"} {
		e := entry("n", id)
		e.Reason, e.Who, e.Before = "because "+id, id, id+"\xf0"
		want = append(want, e)
	}
	add(t, l, want...)
	page := read(t, l, Query{})
	if len(page.Entries) != len(want) || page.Bad != 0 || page.Next != "" {
		t.Fatalf("%d entries, %d bad, next %q", len(page.Entries), page.Bad, page.Next)
	}
	for i, e := range want {
		if got := page.Entries[len(want)-1-i]; got != e {
			t.Errorf("got %+v\nwant %+v", got, e)
		}
		if found := read(t, l, Query{Key: &e.Place.Key}); len(found.Entries) != 1 || found.Entries[0] != e {
			t.Errorf("%q: found %d by its key", e.Place.Key.BizID, len(found.Entries))
		}
	}
	text, err := os.ReadFile(l.Path())
	if err != nil || bytes.Count(text, []byte("\n")) != len(want) || !bytes.Contains(text, []byte(`"biz_id":"fffe"`)) {
		t.Errorf("%v\n%s", err, text)
	}
	if info, err := os.Stat(l.Path()); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
}

func TestPagesGoBackThroughAllEntriesOnce(t *testing.T) {
	l := open(t)
	const n = 2500 // more than one chunk
	for i := range n {
		e := entry(fmt.Sprint(i), fmt.Sprint(i%5))
		if i%7 == 0 {
			e.Who, e.Outcome = "bob", Refused
		}
		text, err := encode(e)
		if err != nil {
			t.Fatal(err)
		}
		f, _, err := l.open()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(text); err != nil {
			t.Fatal(err)
		}
		_ = f.Close()
	}
	next, want := "", n-1
	for {
		page := read(t, l, Query{After: next, Limit: 300})
		for _, e := range page.Entries {
			if e.Attempt != fmt.Sprint(want) {
				t.Fatalf("got %s, want %d", e.Attempt, want)
			}
			want--
		}
		if next = page.Next; next == "" {
			break
		}
	}
	if want != -1 {
		t.Errorf("%d entries were not read", want+1)
	}
	for name, c := range map[string]struct {
		q    Query
		want int
	}{
		"who":         {Query{Who: "bob", Limit: 500}, 358},
		"outcome":     {Query{Outcome: Refused, Limit: 500}, 358},
		"nobody":      {Query{Who: "carol"}, 0},
		"another":     {Query{Action: "replay"}, 0},
		"other flow":  {Query{Flow: "refunds"}, 0},
		"key and who": {Query{Key: &flow.Key{BizType: "order_paid", BizID: "1"}, Who: "bob", Limit: 500}, 71},
		"too many":    {Query{Limit: 1 << 20}, MaxEntries},
	} {
		if got := len(read(t, l, c.q).Entries); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	for _, mark := range []string{"x", "-1", "0", "7", "99999999999"} {
		if _, err := l.Read(t.Context(), Query{After: mark}); !errors.Is(err, ErrMark) {
			t.Errorf("%q: %v", mark, err)
		}
	}
}

func TestATornLineSwallowsNothing(t *testing.T) {
	l := open(t)
	add(t, l, entry("1", "1"))
	whole, err := os.ReadFile(l.Path())
	if err != nil {
		t.Fatal(err)
	}
	for cut := 1; cut <= len(whole); cut += 13 {
		if err := os.WriteFile(l.Path(), append(bytes.Clone(whole), whole[:len(whole)-cut]...), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := read(t, l, Query{}); len(got.Entries)+got.Bad != 2 && cut < len(whole) {
			t.Errorf("cut by %d: %d entries, %d bad", cut, len(got.Entries), got.Bad)
		}
		add(t, l, entry("2", "2"))
		got := read(t, l, Query{})
		if got.Entries[0].Attempt != "2" || got.Entries[len(got.Entries)-1].Attempt != "1" || got.Bad > 1 {
			t.Errorf("cut by %d: %+v", cut, got)
		}
	}
}

// The room ends in the middle of an entry, as on a full disk: the writer is told,
// and the next one, when there is room again, loses nothing.
func TestAnEntryThatFindsNoRoomIsAnError(t *testing.T) {
	l := open(t)
	add(t, l, entry("1", "1"))
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = []string{"AUDIT_NO_ROOM=" + l.Path()}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	add(t, l, entry("2", "2"))
	got := read(t, l, Query{})
	if len(got.Entries) != 2 || got.Entries[0].Attempt != "2" || got.Bad != 1 {
		t.Errorf("%d entries, %d bad", len(got.Entries), got.Bad)
	}
}

func TestLinesThatAreNoEntriesAreCountedAndPassed(t *testing.T) {
	l := open(t)
	add(t, l, entry("1", "1"))
	f, err := os.OpenFile(l.Path(), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(f, "{}\nnull\n\n\x00\xff\n{\"at\":1}\n%s\n", strings.Repeat("x", 3*maxLine))
	_ = f.Close()
	add(t, l, entry("2", "2"))
	got := read(t, l, Query{})
	if len(got.Entries) != 2 || got.Bad != 5 || got.Next != "" {
		t.Errorf("%d entries, %d bad, next %q", len(got.Entries), got.Bad, got.Next)
	}
	// Nothing but one endless line.
	if err := os.WriteFile(l.Path(), bytes.Repeat([]byte("x"), maxRead+3*maxLine), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := read(t, l, Query{}); len(got.Entries) != 0 || !got.Cut || got.Bad != 1 {
		t.Errorf("%+v", got)
	}
}

func TestManyWritersLoseNothing(t *testing.T) {
	l := open(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			cmd := exec.Command(self)
			cmd.Env = []string{"AUDIT_WRITER=" + l.Path()}
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	for w := range 4 {
		all.Go(func() {
			for i := range 25 {
				if err := l.Append(context.Background(), entry(fmt.Sprint(w, "-", i), "1")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	got := read(t, l, Query{Limit: MaxEntries})
	seen := map[string]bool{}
	for _, e := range got.Entries {
		seen[e.Attempt] = true
	}
	if len(seen) != 300 || got.Bad != 0 {
		t.Errorf("%d of 300, %d bad", len(seen), got.Bad)
	}
}

func TestWhatCannotBeKeptIsAnError(t *testing.T) {
	folder := t.TempDir()
	pipe := filepath.Join(folder, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for what, path := range map[string]string{"no folder": filepath.Join(folder, "no", "audit"), "a folder": folder, "a pipe": pipe, "a device": "/dev/null"} {
		if err := (&Log{path: path}).Append(t.Context(), entry("1", "1")); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", what, err)
		}
	}
	long := entry("1", "1")
	long.Reason = strings.Repeat("x", maxLine)
	if err := open(t).Append(t.Context(), long); !errors.Is(err, ErrTooLong) {
		t.Error(err)
	}
	// Somebody else holds the file.
	l := open(t)
	add(t, l, entry("1", "1"))
	f, _, err := l.open()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	unlock, err := lock(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := l.Append(ctx, entry("2", "2")); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	unlock()
	add(t, l, entry("3", "3"))
	if got := read(t, l, Query{}); len(got.Entries) != 2 {
		t.Errorf("%+v", got)
	}
}

func TestActionsAreToldOfTheirKeyAlone(t *testing.T) {
	l := open(t)
	payments := flow.Flow{Name: "payments"}
	key := flow.Key{BizType: "order_paid", BizID: "1"}
	if a := l.Tell(t.Context(), payments, key); a.State != flow.Absent || len(a.Events) != 0 {
		t.Errorf("no file: %+v", a)
	}
	begun, unended, other := entry("1", "1"), entry("2", "1"), entry("3", "1 ")
	begun.Outcome, unended.Outcome = Begun, Begun
	unended.Action, unended.At = "replay", at.Add(time.Minute)
	add(t, l, begun, entry("1", "1"), unended, other)
	a := l.Tell(t.Context(), payments, key)
	if a.State != flow.Found || len(a.Events) != 2 || !a.Since.Equal(at) {
		t.Fatalf("%+v", a)
	}
	if e := a.Events[0]; e.Kind != flow.Acted || e.Outcome != "done" || e.Place != "release-lock" || e.Worker != "alice" || e.Layer != flow.LayerRedis || !e.At.Equal(at) {
		t.Errorf("%+v", e)
	}
	if e := a.Events[1]; e.Outcome != "begun" || e.Layer != flow.LayerBroker {
		t.Errorf("%+v", e)
	}
	// A new entry shows at once, and a key of another flow does not.
	add(t, l, entry("4", "1"))
	if a := l.Tell(t.Context(), payments, key); len(a.Events) != 3 {
		t.Errorf("%+v", a)
	}
	if a := l.Tell(t.Context(), flow.Flow{Name: "refunds"}, key); a.State != flow.Absent {
		t.Errorf("%+v", a)
	}
	if a := (&Log{path: t.TempDir()}).Tell(t.Context(), payments, key); a.State != flow.Error || a.Reason.ZH == "" {
		t.Errorf("%+v", a)
	}
}

func TestAnOldActionInALongFileIsNotKnownToBeMissing(t *testing.T) {
	l := open(t)
	old, filler := entry("1", "old"), entry("2", "new")
	filler.Reason = strings.Repeat("x", 100_000)
	add(t, l, old)
	text, err := encode(filler)
	if err != nil {
		t.Fatal(err)
	}
	f, _, err := l.open()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(bytes.Repeat(text, toldBytes/len(text)+2)); err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	if a := l.Tell(t.Context(), flow.Flow{Name: "payments"}, old.Place.Key); a.State != flow.Unknown || a.Reason.Empty() {
		t.Errorf("%+v", a)
	}
	if a := l.Tell(t.Context(), flow.Flow{Name: "payments"}, filler.Place.Key); a.State != flow.Found || len(a.Events) != 42 {
		t.Errorf("%s, %d events", a.State, len(a.Events))
	}
}
