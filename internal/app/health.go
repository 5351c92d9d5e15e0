package app

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"time"

	"idemscope/internal/config"
)

// Health asks the running service on this machine whether it is alive, as a
// container's health check does. A demand for a password is an answer too.
func Health(ctx context.Context, path string) error {
	c, err := config.Load(path)
	if err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return err
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	// The certificate names the service, not the loopback address asked here,
	// and nothing is sent that it would have to protect.
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer transport.CloseIdleConnections()
	for _, scheme := range []string{"http", "https"} {
		if err = healthy(ctx, transport, scheme+"://"+net.JoinHostPort(host, port)+"/healthz"); err == nil {
			return nil
		}
	}
	return err
}

func healthy(ctx context.Context, transport http.RoundTripper, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK && response.StatusCode != http.StatusUnauthorized {
		return fmt.Errorf("%s answered %s", url, response.Status)
	}
	return nil
}
