package testkit

import (
	"net"
	"sync"
	"testing"
	"time"

	"idemscope/internal/lab/servers"
)

// Proxy is a small TCP proxy in front of a server, for tests of slow, hanging and absent servers. Its methods may be
// called at any time; they apply to open connections as well.
type Proxy struct {
	Addr   string // host:port to connect to
	target string
	t      testing.TB

	mu       sync.Mutex
	changed  chan struct{} // closed and replaced at every change of the settings below
	delay    time.Duration
	hang     bool
	closed   bool
	listener net.Listener // nil while connections are refused
	conns    map[net.Conn]struct{}
	wg       sync.WaitGroup
}

// NewProxy starts a proxy in front of target (host:port). It ends with the test.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	p := &Proxy{target: target, t: t, changed: make(chan struct{}), conns: map[net.Conn]struct{}{}}
	if err := p.listenAnywhere(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.close)
	return p
}

// Delay holds every chunk that the server sends for d. Zero ends the delay.
func (p *Proxy) Delay(d time.Duration) {
	p.change(func() { p.delay = d })
}

// Hang stops (true) or resumes (false) the forwarding in both directions. Connections are still accepted.
func (p *Proxy) Hang(on bool) {
	p.change(func() { p.hang = on })
}

// Drop closes the open connections and refuses new ones (true), or accepts connections again (false).
func (p *Proxy) Drop(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case on && p.listener != nil:
		p.cut()
	case !on && p.listener == nil:
		if err := p.listen(p.Addr); err != nil {
			p.t.Errorf("proxy cannot accept connections again: %v", err)
		}
	}
}

// listenAnywhere uses a port outside the range of outgoing connections: nobody takes it while Drop has freed it.
// Point leads to another server from now on, and cuts the connections to the
// present one: a name or an address that moves in a failover.
func (p *Proxy) Point(target string) {
	p.Drop(true)
	p.change(func() { p.target = target })
	p.Drop(false)
}

func (p *Proxy) listenAnywhere() error {
	var err error
	for range 5 {
		var port int
		if port, err = servers.FreePort(); err != nil {
			return err
		}
		addr := net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port}
		if err = p.listen(addr.String()); err == nil {
			p.Addr = addr.String()
			return nil
		}
	}
	return err
}

func (p *Proxy) listen(addr string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	p.listener = l
	p.wg.Go(func() { p.accept(l) })
	return nil
}

func (p *Proxy) accept(l net.Listener) {
	for {
		client, err := l.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.target)
		if err != nil {
			_ = client.Close()
			continue
		}
		if p.add(l, client, server) {
			p.wg.Go(func() { p.forward(server, client, false) })
			p.wg.Go(func() { p.forward(client, server, true) })
		}
	}
}

// add registers the two ends of a connection, unless the listener was closed meanwhile.
func (p *Proxy) add(l net.Listener, ends ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range ends {
		if p.listener != l {
			_ = c.Close()
			continue
		}
		p.conns[c] = struct{}{}
	}
	return p.listener == l
}

// forward copies until one end is closed, and then closes both.
func (p *Proxy) forward(dst, src net.Conn, fromServer bool) {
	defer p.remove(dst, src)
	buf := make([]byte, 32<<10)
	for {
		n, err := src.Read(buf)
		if n > 0 {
			if !p.pass(fromServer) {
				return
			}
			if _, err := dst.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// pass waits for the delay and for the end of a hang. It is false when the proxy ends meanwhile.
func (p *Proxy) pass(fromServer bool) bool {
	arrived := time.Now()
	for {
		p.mu.Lock()
		changed, hang, closed, delay := p.changed, p.hang, p.closed, p.delay
		p.mu.Unlock()
		if closed {
			return false
		}
		if !fromServer {
			delay = 0
		}
		left := delay - time.Since(arrived)
		if !hang && left <= 0 {
			return true
		}
		var due <-chan time.Time
		if !hang {
			due = time.After(left)
		}
		select {
		case <-changed:
		case <-due:
		}
	}
}

func (p *Proxy) remove(ends ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range ends {
		_ = c.Close()
		delete(p.conns, c)
	}
}

func (p *Proxy) change(set func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	set()
	close(p.changed)
	p.changed = make(chan struct{})
}

// cut closes the listener and the connections. The caller holds the lock.
func (p *Proxy) cut() {
	if p.listener != nil {
		_ = p.listener.Close()
		p.listener = nil
	}
	for c := range p.conns {
		_ = c.Close()
	}
}

func (p *Proxy) close() {
	p.change(func() { p.closed = true; p.cut() })
	p.wg.Wait()
}
