package lockstore

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"idemscope/internal/testkit"
)

func TestEvictions(t *testing.T) {
	server := testkit.StartRedis(t, "--maxmemory", "3mb", "--maxmemory-policy", "allkeys-random")
	client := admin(t, server.Addr)
	s := open(t, Options{Addresses: []string{server.Addr}})
	value := strings.Repeat("v", 10_000)
	for i := range 1000 {
		do(t, client, "SET", fmt.Sprint("k", i), value)
	}
	if evicted, err := s.Evictions(t.Context()); err != nil || evicted[""] < 500 {
		t.Errorf("%v %v", evicted, err)
	}
}

func TestEvictionsOfAServerThatIsAway(t *testing.T) {
	_, err := open(t, Options{Addresses: []string{"127.0.0.1:1"}}).Evictions(t.Context())
	var failure *Error
	if !errors.As(err, &failure) || failure.Refused() {
		t.Errorf("%v", err)
	}
}
