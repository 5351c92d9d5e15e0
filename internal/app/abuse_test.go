package app

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestClientsThatTakeForEverAreHungUpOn: headers that trickle in hold a
// connection for seconds, not for ever, and nobody else waits for them.
func TestClientsThatTakeForEverAreHungUpOn(t *testing.T) {
	file := filepath.Join(t.TempDir(), "idemscope.yaml")
	writeFile(t, file, smallConfig(t, "127.0.0.1:0", "", "pay"))
	address := serveConfig(t, file, nil)
	var slow []net.Conn
	for range 300 {
		conn, err := net.Dial("tcp", strings.TrimPrefix(address, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: console\r\nX-Slow: "); err != nil {
			t.Fatal(err)
		}
		slow = append(slow, conn)
	}
	if page := get(t, address+"/"); !strings.Contains(page, ">pay<") {
		t.Error("others get no page")
	}
	for _, conn := range slow {
		_ = conn.SetReadDeadline(time.Now().Add(30 * time.Second))
		if _, err := io.ReadAll(conn); errors.Is(err, net.ErrClosed) || isTimeout(err) {
			t.Fatalf("a connection without a request is kept: %v", err)
		}
	}
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// TestAHugeRequestIsRefusedUnread: the console reads forms of a few kilobytes.
func TestAHugeRequestIsRefusedUnread(t *testing.T) {
	file := filepath.Join(t.TempDir(), "idemscope.yaml")
	writeFile(t, file, smallConfig(t, "127.0.0.1:0", "", "pay"))
	address := serveConfig(t, file, nil)
	for _, path := range []string{"/", "/key?type=pay&id=1", "/trace", "/-/reload?x=1", "/nowhere"} {
		body := &counted{Reader: bytes.NewReader(make([]byte, 10<<20))}
		request, err := http.NewRequest(http.MethodPost, address+path, body)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		// A server that hangs up in the middle of the body is right, too.
		response, err := http.DefaultClient.Do(request)
		if err == nil {
			_ = response.Body.Close()
			if path != "/-/reload?x=1" && response.StatusCode < http.StatusBadRequest {
				t.Errorf("POST %s: %s", path, response.Status)
			}
		}
		if body.n.Load() > 9<<20 {
			t.Errorf("POST %s: %d bytes of the body were taken", path, body.n.Load())
		}
	}
	if page := get(t, address+"/"); !strings.Contains(page, ">pay<") {
		t.Error("afterwards there is no page")
	}
}

// counted counts what is read of it. It hides the length, so that the body is sent in chunks.
type counted struct {
	io.Reader
	n atomic.Int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n.Add(int64(n))
	return n, err
}
