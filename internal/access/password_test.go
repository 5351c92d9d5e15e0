package access

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"idemscope/internal/audit"
)

func TestWhichPasswordsAreRight(t *testing.T) {
	long := strings.Repeat("x", 72)
	o := staff(t)
	o.Users = append(o.Users, user(t, "dora", long), user(t, "", "empty name"), user(t, "eve", "密码 \x00 ü"))
	d := newDesk(t, o)
	for _, c := range []struct {
		name, password string
		want           error
	}{
		{"alice", "a-secret", nil}, {"alice", "a-secret", nil}, {"alice", "b-secret", ErrPassword}, {"alice", "", ErrPassword}, {"ALICE", "a-secret", ErrPassword},
		{"alice ", "a-secret", ErrPassword}, {"nobody", "a-secret", ErrPassword}, {"dora", long, nil}, {"dora", long + "y", ErrPassword}, {"dora", long[1:], ErrPassword},
		{"eve", "密码 \x00 ü", nil}, {"eve", "密码 ", ErrPassword}, {strings.Repeat("n", 1000), "x", ErrPassword},
	} {
		cookie, err := d.SignIn(request("POST", "/signin", nil), c.name, c.password)
		if err != c.want || (cookie != nil) != (err == nil) {
			t.Errorf("%q %q: %v", c.name, c.password, err)
		}
		d.Memory.addresses = newThrottle(addressPause, d.clock.now)
		d.Memory.names = newThrottle(namePause, d.clock.now)
	}
}

// Names that are not there are not written down: people type passwords there.
func TestFailedSignInsAreRecorded(t *testing.T) {
	d := newDesk(t, staff(t))
	_, _ = d.SignIn(request("POST", "/signin", nil), "alice", "wrong-password")
	_, _ = d.SignIn(request("POST", "/signin", nil), "my-secret-password", "wrong-password")
	got := d.kept.take()
	if len(got) != 2 || got[0].Who != "alice" || got[1].Who != "" || got[0].From != "192.0.2.7" {
		t.Fatalf("recorded %+v", got)
	}
	for _, e := range got {
		if e.Action != "sign-in" || e.Outcome != audit.Refused || e.Why.EN == "" || e.Why.ZH == "" || e.Attempt == "" || !e.At.Equal(d.clock.now()) {
			t.Errorf("recorded %+v", e)
		}
	}
	if contains(d.log.String(), "my-secret-password") || contains(d.log.String(), "wrong-password") || contains(fmt.Sprint(got), "wrong-password") {
		t.Error("a password is written down")
	}
}

func TestWhoeverFailsWaitsTwiceAsLongEachTime(t *testing.T) {
	d := newDesk(t, staff(t))
	wrong := func() error {
		_, err := d.SignIn(request("POST", "/signin", nil), "alice", "wrong")
		return err
	}
	for i := range freeTries {
		if err := wrong(); err != ErrPassword {
			t.Fatalf("attempt %d: %v", i, err)
		}
	}
	for _, want := range []time.Duration{1, 2, 4, 8, 16, 32} {
		var wait ErrThrottled
		if err := wrong(); !errors.As(err, &wait) || wait.After != want*time.Second {
			t.Fatalf("%v, want to wait %d s", err, want)
		}
		d.clock.pass(want*time.Second - time.Millisecond)
		if err := wrong(); err == ErrPassword {
			t.Fatal("it waits too short")
		}
		d.clock.pass(time.Millisecond)
		if err := wrong(); err != ErrPassword {
			t.Fatalf("after waiting: %v", err)
		}
	}
	if got := len(d.kept.take()); got != freeTries+6 {
		t.Errorf("%d recorded, want one for each password that was looked at", got)
	}
	// Waiting while throttled does not make it longer, and the right password waits, too.
	var wait ErrThrottled
	if _, err := d.SignIn(request("POST", "/signin", nil), "alice", "a-secret"); !errors.As(err, &wait) || wait.After > addressPause {
		t.Errorf("%v", err)
	}
	d.clock.pass(wait.After)
	if _, err := d.SignIn(request("POST", "/signin", nil), "alice", "a-secret"); err != nil {
		t.Errorf("after waiting: %v", err)
	}
}

// Many addresses guess one name, and one address guesses many names.
func TestNamesAndAddressesAreCountedEachForItself(t *testing.T) {
	try := func(d desk, name, from string) error {
		r := request("POST", "/signin", nil)
		r.RemoteAddr = from
		_, err := d.SignIn(r, name, "wrong")
		return err
	}
	throttled := func(err error) bool { return errors.As(err, new(ErrThrottled)) }
	d := newDesk(t, staff(t))
	for i := range freeTries {
		_ = try(d, "alice", fmt.Sprintf("198.51.100.%d:1", i))
	}
	if !throttled(try(d, "alice", "203.0.113.1:1")) || throttled(try(d, "bob", "203.0.113.1:1")) {
		t.Error("a name that is guessed from many addresses is not throttled, or others are")
	}
	d = newDesk(t, staff(t))
	for i := range freeTries {
		_ = try(d, fmt.Sprint("name", i), "198.51.100.1:1")
	}
	if !throttled(try(d, "bob", "198.51.100.1:2")) || throttled(try(d, "bob", "203.0.113.1:1")) {
		t.Error("an address that guesses many names is not throttled, or others are")
	}
	d = newDesk(t, staff(t))
	for i := range freeTries {
		_ = try(d, fmt.Sprint("name", i), fmt.Sprintf("[2001:db8::%d]:1", i))
	}
	if !throttled(try(d, "bob", "[2001:db8::ffff]:1")) || throttled(try(d, "bob", "[2001:db8:1::1]:1")) {
		t.Error("the addresses of one IPv6 customer are not counted together, or others are")
	}
}

func TestManyAttemptsAtOnceAreNotMoreThanOneAfterTheOther(t *testing.T) {
	d := newDesk(t, staff(t))
	var looked atomic.Int64
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if _, err := d.SignIn(request("POST", "/signin", nil), "alice", "wrong"); err == ErrPassword {
				looked.Add(1)
			}
		})
	}
	all.Wait()
	if n := looked.Load(); n != freeTries {
		t.Errorf("%d passwords were looked at", n)
	}
}

func TestTheThrottleIsBounded(t *testing.T) {
	c := &clock{at: time.Unix(1_000_000, 0)}
	th := newThrottle(time.Minute, c.now)
	for range freeTries {
		th.begin("first")
	}
	for i := range throttled + 500 {
		c.pass(time.Millisecond)
		th.begin(fmt.Sprint("other", i))
	}
	if len(th.tries) > throttled {
		t.Errorf("%d are remembered", len(th.tries))
	}
	c.pass(2 * forgiven)
	th.begin("late")
	if len(th.tries) != 1 {
		t.Errorf("%d are remembered for ever", len(th.tries))
	}
}

// The time does not tell which names there are: both are compared with a hash, of
// the same cost.
func TestUnknownNamesTakeAsLong(t *testing.T) {
	d := newDesk(t, staff(t))
	real, err := bcrypt.Cost(d.Users[0].Hash)
	decoy, err2 := bcrypt.Cost(d.decoy)
	if err != nil || err2 != nil || real != decoy {
		t.Errorf("costs %d and %d", real, decoy)
	}
	if right, err := d.compare(request("POST", "/signin", nil), User{}, false, "a-secret"); right || err != nil {
		t.Errorf("%v %v", right, err)
	}
}

func TestAFloodOfSignInsWaitsForItsTurn(t *testing.T) {
	d := newDesk(t, staff(t))
	for range cap(d.Memory.slots) {
		d.Memory.slots <- struct{}{}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.SignIn(request("POST", "/signin", nil).WithContext(ctx), "alice", "a-secret"); err != ErrBusy {
		t.Errorf("%v", err)
	}
	<-d.Memory.slots
	if _, err := d.SignIn(request("POST", "/signin", nil), "alice", "a-secret"); err != nil {
		t.Errorf("%v", err)
	}
}

// Programs send their password with every request, and it is hashed once.
func TestARightPasswordIsRemembered(t *testing.T) {
	d := newDesk(t, staff(t))
	get := func(password string) error {
		_, err := d.Admit(basic(request("GET", "/metrics", nil), "alice", password), ToScrape)
		return err
	}
	if err := get("a-secret"); err != nil {
		t.Fatal(err)
	}
	for range cap(d.Memory.slots) {
		d.Memory.slots <- struct{}{}
	}
	for range 2 * freeTries {
		if err := get("a-secret"); err != nil {
			t.Fatalf("it is hashed again: %v", err)
		}
	}
	for range cap(d.Memory.slots) {
		<-d.Memory.slots
	}
	changed := d.Options
	changed.Users = []User{user(t, "alice", "new")}
	next := newDesk(t, changed)
	if _, err := next.Admit(basic(request("GET", "/metrics", nil), "alice", "a-secret"), ToScrape); err != ErrPassword {
		t.Errorf("the password of before is still right: %v", err)
	}
	for range freeTries {
		_ = get("wrong")
	}
	if err := get("a-secret"); err != nil {
		t.Errorf("somebody else's failures lock a program out: %v", err)
	}
}

func TestWrongBasicIsSlowedDownAndRecorded(t *testing.T) {
	d := newDesk(t, staff(t))
	for range freeTries {
		if _, err := d.Admit(basic(request("GET", "/api/v1/lookup", nil), "alice", "wrong"), ToEnter); err != ErrPassword {
			t.Fatal(err)
		}
	}
	if _, err := d.Admit(basic(request("POST", "/trace", nil), "alice", "wrong"), ToEnter); !errors.As(err, new(ErrThrottled)) {
		t.Errorf("%v", err)
	}
	if got := d.kept.take(); len(got) != freeTries {
		t.Errorf("%d recorded", len(got))
	}
}
