package janitor

import (
	"net"
	"testing"
)

// newWire carries connections to a server, and returns its address. Every question
// is shown to seen before it is passed on, and is the last one when seen says so.
func newWire(t *testing.T, target string, seen func(q []byte, client, server net.Conn) (goesOn bool)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", target)
			if err != nil {
				_ = client.Close()
				continue
			}
			go carry(server, client, nil)
			go carry(client, server, func(q []byte) bool { return seen(q, client, server) })
		}
	}()
	return l.Addr().String()
}

// carry passes on what it reads until one side is closed, and closes both.
func carry(from, to net.Conn, seen func([]byte) bool) {
	defer from.Close()
	defer to.Close()
	buffer := make([]byte, 1<<16)
	for {
		n, err := from.Read(buffer)
		if err != nil || seen != nil && !seen(buffer[:n]) {
			return
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}
