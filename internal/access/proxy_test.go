package access

import (
	"slices"
	"strings"
	"testing"
)

func proxied(t *testing.T) desk {
	return newDesk(t, Options{
		Proxy: &Proxy{Header: "X-Forwarded-User", Groups: "X-Forwarded-Groups", From: networks(t, "10.0.0.0/8", "fd00::/8", "127.0.0.0/8")},
		Rules: Rules{Viewer: {"*"}, Operator: {"group:on call"}},
	})
}

func TestTheProxysHeaderCountsFromItsOwnAddresses(t *testing.T) {
	d := proxied(t)
	for name, c := range map[string]struct {
		from    string
		headers []string
		who     string
		roles   []Role
	}{
		"the proxy":               {"10.9.9.9:1", []string{"X-Forwarded-User", "alice"}, "alice", []Role{Viewer}},
		"with groups":             {"10.9.9.9:1", []string{"X-Forwarded-User", "alice", "X-Forwarded-Groups", "dev, on call ,x"}, "alice", []Role{Viewer, Operator}},
		"by IPv6":                 {"[fd00::1]:1", []string{"X-Forwarded-User", "alice"}, "alice", []Role{Viewer}},
		"by IPv4 inside IPv6":     {"[::ffff:10.1.2.3]:1", []string{"X-Forwarded-User", "alice"}, "alice", []Role{Viewer}},
		"spelled otherwise":       {"10.9.9.9:1", []string{"x-forwarded-user", "alice"}, "alice", []Role{Viewer}},
		"somebody else":           {"192.0.2.7:1", []string{"X-Forwarded-User", "alice"}, "", nil},
		"next to its addresses":   {"11.0.0.1:1", []string{"X-Forwarded-User", "alice"}, "", nil},
		"an address in a header":  {"192.0.2.7:1", []string{"X-Forwarded-User", "alice", "X-Forwarded-For", "10.9.9.9"}, "", nil},
		"no header":               {"10.9.9.9:1", nil, "", nil},
		"an empty one":            {"10.9.9.9:1", []string{"X-Forwarded-User", ""}, "", nil},
		"two":                     {"10.9.9.9:1", []string{"X-Forwarded-User", "alice", "X-Forwarded-User", "eve"}, "", nil},
		"a control character":     {"10.9.9.9:1", []string{"X-Forwarded-User", "ali\tce"}, "", nil},
		"no text":                 {"10.9.9.9:1", []string{"X-Forwarded-User", "ali\xffce"}, "", nil},
		"a very long one":         {"10.9.9.9:1", []string{"X-Forwarded-User", strings.Repeat("a", 300)}, "", nil},
		"two headers with groups": {"10.9.9.9:1", []string{"X-Forwarded-User", "alice", "X-Forwarded-Groups", "on call", "X-Forwarded-Groups", "x"}, "alice", []Role{Viewer}},
		"no address":              {"@", []string{"X-Forwarded-User", "alice"}, "", nil},
	} {
		r := request("GET", "/", nil, c.headers...)
		r.RemoteAddr = c.from
		v, err := d.Admit(r, ToEnter)
		if v.Name != c.who || !slices.Equal(v.Roles, c.roles) || (err == nil) != (c.who != "") {
			t.Errorf("%s: %+v, %v", name, v, err)
		}
		if trusted := strings.Contains(c.from, "10.") || strings.Contains(c.from, "fd00"); !trusted && (r.Header.Get("X-Forwarded-User") != "" || r.Header.Get("X-Forwarded-For") != "") {
			t.Errorf("%s: the headers are passed on", name)
		}
	}
}

func TestWhereARequestCameFrom(t *testing.T) {
	d := proxied(t)
	for name, c := range map[string]struct{ from, forwarded, want string }{
		"directly":                   {"192.0.2.7:1", "", "192.0.2.7"},
		"directly, and lying":        {"192.0.2.7:1", "1.1.1.1", "192.0.2.7"},
		"through the proxy":          {"10.0.0.1:1", "192.0.2.7", "192.0.2.7"},
		"through two of them":        {"10.0.0.1:1", "192.0.2.7, 10.0.0.2", "192.0.2.7"},
		"lying through the proxy":    {"10.0.0.1:1", "1.1.1.1, 192.0.2.7", "192.0.2.7"},
		"nonsense through the proxy": {"10.0.0.1:1", "1.1.1.1, nonsense", "10.0.0.1"},
		"the proxy itself":           {"10.0.0.1:1", "", "10.0.0.1"},
		"IPv6":                       {"10.0.0.1:1", "2001:db8::1", "2001:db8::1"},
		"a socket":                   {"@", "192.0.2.7", "@"},
	} {
		r := request("GET", "/", nil)
		if r.RemoteAddr = c.from; c.forwarded != "" {
			r.Header.Set("X-Forwarded-For", c.forwarded)
		}
		if got := d.address(r); got != c.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// Where a sign-in leads back to is inside the console, or its start page.
func TestReturn(t *testing.T) {
	for _, address := range []string{
		"findings", "key?type=pay&id=1", "key?type=pay&id=%00%FF", "search?q=https%3A%2F%2Fevil.example", "?lang=zh", "api/v1/lookup?x", "key?id=a:b", "key?id=%0d%0aSet-Cookie:x", "key?id=//evil.example",
	} {
		if got := Return(address); got != address {
			t.Errorf("%q became %q", address, got)
		}
	}
	for _, address := range []string{
		"", "/", "//evil.example", "///evil.example", "/\\evil.example", "\\\\evil.example", "\\evil.example", "https://evil.example", "https:evil.example", "HTTPS://evil.example", "javascript:alert(1)",
		"data:text/html,x", " javascript:alert(1)", "..", "../x", "x/../../y", "./x", "x//y", "x/./y", "key\r\nSet-Cookie: a=b", "key?id=\r\nx", "key\x00", "\tkey", "//evil.example/%2e%2e", "%2e%2e/x", "%2f%2fevil.example",
		"evil.example:80/x", "user@evil.example:1", "http:/evil.example", "%5c%5cevil.example", "key?" + strings.Repeat("x", maxReturn), "%zz", "x%0d%0ay/..",
	} {
		if got := Return(address); got != "" {
			t.Errorf("%q became %q", address, got)
		}
	}
	if got := Return("key?id=1#x"); got != "key?id=1" {
		t.Errorf("a fragment became %q", got)
	}
}
