package lockstore

import (
	"errors"
	"strings"
	"testing"
	"time"

	"idemscope/internal/testkit"
)

func TestReleaseDeletesOnlyWhatWasSeen(t *testing.T) {
	db := testkit.Redis(t)
	s := open(t, Options{Addresses: []string{db.Addr}, DB: db.DB, Once: true})
	client := db.Client
	for _, c := range []struct {
		what     string
		set      []any
		expected Expected
		want     ReleaseOutcome
	}{
		{"the same", []any{"SET", "k", "a", "PX", 60_000}, Expected{Value: "a", MostTTL: time.Minute}, Deleted},
		{"never expires", []any{"SET", "k", "a"}, Expected{Value: "a", NoTTL: true}, Deleted},
		{"an empty value", []any{"SET", "k", ""}, Expected{Value: "", NoTTL: true}, Deleted},
		{"any bytes", []any{"SET", "k", "\x00\xff\r\n"}, Expected{Value: "\x00\xff\r\n", NoTTL: true}, Deleted},
		{"a long value", []any{"SET", "k", strings.Repeat("v", 5000)}, Expected{Value: strings.Repeat("v", 5000), NoTTL: true}, Deleted},
		{"gone", []any{"DEL", "k"}, Expected{Value: "a", NoTTL: true}, AlreadyGone},
		{"another holder", []any{"SET", "k", "b", "PX", 60_000}, Expected{Value: "a", MostTTL: time.Minute}, OtherValue},
		{"a longer value", []any{"SET", "k", strings.Repeat("v", 5000) + "w"}, Expected{Value: strings.Repeat("v", 5000), NoTTL: true}, OtherValue},
		{"other case", []any{"SET", "k", "A"}, Expected{Value: "a", NoTTL: true}, OtherValue},
		{"extended", []any{"SET", "k", "1", "PX", 60_000}, Expected{Value: "1", MostTTL: 10 * time.Second}, LongerExpiry},
		{"made permanent", []any{"SET", "k", "1"}, Expected{Value: "1", MostTTL: 10 * time.Second}, LongerExpiry},
		{"given an expiry", []any{"SET", "k", "1", "PX", 60_000}, Expected{Value: "1", NoTTL: true}, LongerExpiry},
		{"a hash", []any{"HSET", "k", "f", "a"}, Expected{Value: "a", NoTTL: true}, OtherType},
		{"a list", []any{"RPUSH", "k", "a"}, Expected{Value: "a", NoTTL: true}, OtherType},
	} {
		do(t, client, "DEL", "k")
		do(t, client, c.set...)
		c.expected.Key = "k"
		got, err := s.Release(t.Context(), c.expected)
		if err != nil || got.Outcome != c.want {
			t.Errorf("%s: %+v %v", c.what, got, err)
		}
		left := client.Exists(t.Context(), "k").Val()
		if want := c.want != Deleted && c.want != AlreadyGone; (left == 1) != want {
			t.Errorf("%s: %d keys left", c.what, left)
		}
		if c.want == OtherValue && c.what == "another holder" && (got.Value != "b" || got.TTL <= 0 || got.TTL > time.Minute) {
			t.Errorf("%+v", got)
		}
	}
}

func TestReleaseOfAKeyWithAnyBytesTouchesNoOther(t *testing.T) {
	db := testkit.Redis(t)
	s := open(t, Options{Addresses: []string{db.Addr}, DB: db.DB, Once: true})
	for _, key := range []string{"", "a*", "a\x00b", "\xff", "{x}", "a\r\nDEL b"} {
		do(t, db.Client, "MSET", key, "v", "a", "v", "b", "v")
		if got, err := s.Release(t.Context(), Expected{Key: key, Value: "v", NoTTL: true}); err != nil || got.Outcome != Deleted {
			t.Errorf("%q: %+v %v", key, got, err)
		}
		if n := db.Client.DBSize(t.Context()).Val(); n != 2 {
			t.Errorf("%q: %d keys left", key, n)
		}
	}
}

func TestAReleaseThatFailsIsNotSentAgain(t *testing.T) {
	server := testkit.StartRedis(t)
	client := admin(t, server.Addr)
	do(t, client, "SET", "k", "a")
	proxy := testkit.NewProxy(t, server.Addr)
	s := open(t, Options{Addresses: []string{proxy.Addr}, Once: true})
	proxy.Drop(true)
	var failure *Error
	if _, err := s.Release(t.Context(), Expected{Key: "k", Value: "a", NoTTL: true}); !errors.As(err, &failure) || failure.Text.ZH == "" {
		t.Fatal(err)
	}
	if n := s.dials.Load(); n != 1 {
		t.Errorf("connected %d times", n)
	}
	if client.Get(t.Context(), "k").Val() != "a" {
		t.Error("the key is gone")
	}
}

// The rights that the documentation names are enough, and one that may only read is refused.
func TestReleaseNeedsTheRightsThatAreDocumented(t *testing.T) {
	server := testkit.StartRedis(t)
	client := admin(t, server.Addr)
	do(t, client, "ACL", "SETUSER", "act", "on", ">pw", "~lock:*", "+eval", "+type", "+pttl", "+get", "+del")
	do(t, client, "ACL", "SETUSER", "reader", "on", ">pw", "~lock:*", "+@read")
	do(t, client, "MSET", "lock:1", "a", "other", "a")
	act := open(t, Options{Addresses: []string{server.Addr}, User: "act", Password: "pw", Once: true})
	if got, err := act.Release(t.Context(), Expected{Key: "lock:1", Value: "a", NoTTL: true}); err != nil || got.Outcome != Deleted {
		t.Errorf("%+v %v", got, err)
	}
	if _, err := act.Release(t.Context(), Expected{Key: "other", Value: "a", NoTTL: true}); err == nil {
		t.Error("deleted beyond its keys")
	}
	reader := open(t, Options{Addresses: []string{server.Addr}, User: "reader", Password: "pw", Once: true})
	if _, err := reader.Release(t.Context(), Expected{Key: "lock:1", Value: "a", NoTTL: true}); err == nil || !strings.Contains(err.Error(), "EVAL") {
		t.Errorf("%v", err)
	}
}
