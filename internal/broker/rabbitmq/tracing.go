package rabbitmq

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// Tracing reports whether the vhost's tracing (the firehose) is on. Only an
// administrator may ask. The error is an *Error; it holds no secret.
func (b *Broker) Tracing(ctx context.Context) (bool, error) {
	start := time.Now()
	var vhost struct {
		Name    string
		Tracing *bool
	}
	err := b.get(ctx, b.url("name,tracing", "vhosts", b.opts.Vhost), &vhost)
	if isMissing(err) {
		err = errNoVhost
	}
	if err == nil && (vhost.Name != b.opts.Vhost || vhost.Tracing == nil) {
		err = errNotRabbitMQ
	}
	if err != nil {
		return false, b.failure(err, start)
	}
	return *vhost.Tracing, nil
}

// SetTracing turns the vhost's tracing on or off. It costs every message of the
// vhost time and is the only call here that changes anything. Only an
// administrator may. The error is an *Error; it holds no secret.
func (b *Broker) SetTracing(ctx context.Context, on bool) error {
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, b.opts.Timeout)
	defer cancel()
	text, err := json.Marshal(map[string]bool{"tracing": on})
	if err != nil {
		return fmt.Errorf("tracing: %w", err)
	}
	address, _, _ := bytes.Cut([]byte(b.url("", "vhosts", b.opts.Vhost)), []byte("?"))
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, string(address), bytes.NewReader(text))
	if err != nil {
		return b.failure(err, start)
	}
	req.Header.Set("Content-Type", "application/json")
	if err := b.do(req, http.StatusNoContent, nil); err != nil {
		return b.failure(err, start)
	}
	return nil
}
