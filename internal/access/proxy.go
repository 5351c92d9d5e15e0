package access

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Proxy is what a trusted proxy tells. Its headers count from its own addresses
// alone; from anywhere else they are dropped.
type Proxy struct {
	// Header holds the name of the person. Empty: the proxy tells only where a
	// request came from.
	Header string
	// Groups holds the person's groups, with commas between them; may be empty.
	Groups string
	// From are the addresses of the proxy.
	From []netip.Prefix
}

// forwarded are the headers by which a proxy tells where a request came from.
const (
	forwardedFor   = "X-Forwarded-For"
	forwardedProto = "X-Forwarded-Proto"
	forwardedHost  = "X-Forwarded-Host"
)

// trusts reports an address of the proxy.
func (p *Proxy) trusts(a netip.Addr) bool {
	return p != nil && a.IsValid() && slices.ContainsFunc(p.From, func(n netip.Prefix) bool { return n.Contains(a) })
}

// peer is the other end of the connection.
func peer(r *http.Request) netip.Addr {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return at.Addr().Unmap().WithZone("")
}

// viaProxy reports that the request came through the trusted proxy.
func (g *Guard) viaProxy(r *http.Request) bool { return g.Proxy.trusts(peer(r)) }

// proxied returns the person that the trusted proxy names.
func (g *Guard) proxied(r *http.Request) (name string, groups []string, ok bool) {
	if g.Proxy == nil || g.Proxy.Header == "" || !g.viaProxy(r) {
		return "", nil, false
	}
	// Two of them: one may be the client's own, which the proxy should have dropped.
	names := r.Header.Values(g.Proxy.Header)
	if len(names) != 1 || !isName(names[0]) {
		return "", nil, false
	}
	if g.Proxy.Groups != "" {
		if all := r.Header.Values(g.Proxy.Groups); len(all) == 1 {
			for _, group := range strings.Split(all[0], ",") {
				groups = append(groups, strings.TrimSpace(group))
			}
		}
	}
	return names[0], groups, true
}

// isName reports a name that a person can have.
func isName(s string) bool {
	return s != "" && len(s) <= maxName && utf8.ValidString(s) && strings.IndexFunc(s, unicode.IsControl) < 0
}

// strip drops the headers that only a trusted proxy may set.
func (g *Guard) strip(r *http.Request) {
	if g.viaProxy(r) {
		return
	}
	for _, name := range []string{forwardedFor, forwardedProto, forwardedHost} {
		r.Header.Del(name)
	}
	if g.Proxy != nil && g.Proxy.Header != "" {
		r.Header.Del(g.Proxy.Header)
		r.Header.Del(g.Proxy.Groups)
	}
}

// address is where the request came from: the last address that the trusted
// proxies did not add themselves, else the other end of the connection.
func (g *Guard) address(r *http.Request) string {
	at := peer(r)
	if g.Proxy.trusts(at) {
		hops := strings.Split(strings.Join(r.Header.Values(forwardedFor), ","), ",")
		for _, hop := range slices.Backward(hops) {
			next, err := netip.ParseAddr(strings.TrimSpace(hop))
			if err != nil {
				break
			}
			if at = next.Unmap().WithZone(""); !g.Proxy.trusts(at) {
				break
			}
		}
	}
	if !at.IsValid() {
		return r.RemoteAddr
	}
	return at.String()
}

// throttledAddress is the address by which failures are counted. One customer has
// a whole /64 of IPv6 addresses.
func throttledAddress(from string) string {
	a, err := netip.ParseAddr(from)
	if err != nil || a.Is4() {
		return from
	}
	network, err := a.Prefix(64)
	if err != nil {
		return from
	}
	return network.String()
}

// secure reports that the browser speaks https, so that cookies never travel in the clear.
func (g *Guard) secure(r *http.Request) bool {
	return r.TLS != nil || g.viaProxy(r) && strings.EqualFold(r.Header.Get(forwardedProto), "https")
}

// host is the name and port by which the browser calls the console.
func (g *Guard) host(r *http.Request) string {
	if host := r.Header.Get(forwardedHost); host != "" && g.viaProxy(r) {
		return host
	}
	return r.Host
}

// otherSite reports that a browser says it was sent by a page of another site.
// Where nobody is asked who he is, the name must be one of this machine's own:
// a foreign name can be made to lead here, and its pages would count as ours.
func (g *Guard) otherSite(r *http.Request) bool {
	if g.isOpen() && !isLocal(r.Host) {
		return true
	}
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" {
		return site != "same-origin" && site != "none"
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return false
	}
	from, err := url.Parse(origin)
	return err != nil || !strings.EqualFold(from.Host, g.host(r))
}

// isLocal reports a host that no name server elsewhere decides about.
func isLocal(hostPort string) bool {
	host, _, err := net.SplitHostPort(hostPort)
	if err != nil {
		host = strings.Trim(hostPort, "[]")
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	_, err = netip.ParseAddr(host)
	return err == nil
}
