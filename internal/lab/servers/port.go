package servers

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// Ports are taken below the range that systems use for outgoing connections, so that none of those takes one between
// the choice and the server's own bind. Redis Cluster adds 10000 for its bus, which still is a port.
const (
	firstPort = 20000
	portCount = 12000
)

// loopback is the only address that private servers listen on.
const loopback = "127.0.0.1"

// FreePort returns a TCP port (20000 to 31999) that nothing listens on at 127.0.0.1. Another process may still take
// it before the caller does.
func FreePort() (int, error) {
	for range 200 {
		port := firstPort + rand.IntN(portCount)
		l, err := net.Listen("tcp", address(port))
		if err != nil {
			continue
		}
		if err := l.Close(); err != nil {
			return 0, fmt.Errorf("free port: %w", err)
		}
		return port, nil
	}
	return 0, errors.New("free port: none found on " + loopback)
}

func address(port int) string {
	return fmt.Sprintf("%s:%d", loopback, port)
}

// errPortTaken marks a start that failed because somebody else was quicker to bind the port.
var errPortTaken = errors.New("port was taken by another process")

// portRaces is how many starts in a row may lose the race for a port.
const portRaces = 5

// portSource chooses a port; FreePort outside tests.
type portSource func() (int, error)

// retryPorts calls start again, with new ports, as long as it fails with errPortTaken.
func retryPorts[T any](start func() (T, error)) (T, error) {
	var server T
	var err error
	for range portRaces {
		server, err = start()
		if !errors.Is(err, errPortTaken) {
			return server, err
		}
	}
	return server, err
}
