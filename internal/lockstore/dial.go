package lockstore

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// dialer connects like the client library does, but hands out a failure as a
// connection that fails at its first use. The library's pool counts dial errors
// over its whole life; past its size it answers with the last error
// until a probe, one each second, gets through. A store would then look down
// after it has come back, and the probe would outlive Close. It counts in dials.
func (o Options) dialer(dials *atomic.Uint64) func(context.Context, string, string) (net.Conn, error) {
	dial := redis.NewDialer(&redis.Options{DialTimeout: o.Timeout, TLSConfig: o.TLS})
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		dials.Add(1)
		conn, err := dial(ctx, network, address)
		if err != nil {
			// The library takes one wrapping off, which must not be the address.
			return failedConn{fmt.Errorf("connect: %w", err)}, nil
		}
		return conn, nil
	}
}

// failedConn is a connection that was never made: err says why.
type failedConn struct{ err error }

func (c failedConn) Read([]byte) (int, error)       { return 0, c.err }
func (c failedConn) Write([]byte) (int, error)      { return 0, c.err }
func (failedConn) Close() error                     { return nil }
func (failedConn) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (failedConn) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (failedConn) SetDeadline(time.Time) error      { return nil }
func (failedConn) SetReadDeadline(time.Time) error  { return nil }
func (failedConn) SetWriteDeadline(time.Time) error { return nil }
