package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/prometheus/exporter-toolkit/web"

	"idemscope/internal/config"
)

const (
	// exporterTimeout bounds one question of the exporter to one store.
	exporterTimeout = 2 * time.Second
	// statementGrace is how much longer the server itself lets a statement
	// run: the client gives up first and can say why.
	statementGrace = 500 * time.Millisecond
	// shutdownTime is what open requests get to end.
	shutdownTime = 5 * time.Second
)

// ServeOptions describe the service.
type ServeOptions struct {
	// Config is the path of the configuration file. Mandatory.
	Config string
	// Logger is mandatory.
	Logger *slog.Logger
	// Reload makes the service read its configuration anew. May be nil.
	Reload <-chan os.Signal
	// Started is called with the console's address as soon as it answers. May be nil.
	Started func(url string)
}

// Serve runs exporter and console until ctx ends, then stops them in reverse
// order. It returns nil after a stop that was asked for.
func Serve(ctx context.Context, o ServeOptions) (err error) {
	s, err := newService(o.Config, o.Logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	listeners, err := openListeners(s.current.config)
	if err != nil {
		return err
	}
	ended := make(chan error, 2)
	main := newServer(s, o.Logger)
	go func() { ended <- serveMain(listeners.main, main, s.current.config, o.Logger) }()
	running := []*http.Server{main}
	if listeners.metrics != nil {
		metrics := newServer(s.metricsOnly(), o.Logger)
		go func() { ended <- metrics.Serve(listeners.metrics) }()
		running = append(running, metrics)
	}
	o.Logger.Info("console and metrics are up", "address", listeners.main.Addr().String())
	if o.Started != nil {
		o.Started(listeners.scheme + "://" + listeners.main.Addr().String())
	}
	return supervise(ctx, o, s, running, ended)
}

// supervise waits for the end, and reloads when it is told to.
func supervise(ctx context.Context, o ServeOptions, s *service, running []*http.Server, ended <-chan error) error {
	for {
		select {
		case <-o.Reload:
			// The result is logged and exported; the old configuration stays on failure.
			_ = s.reload()
		case err := <-ended:
			return errors.Join(fmt.Errorf("serve: %w", err), shutDown(ctx, running, len(running)-1, ended, o.Logger))
		case <-ctx.Done():
			return shutDown(ctx, running, len(running), ended, o.Logger)
		}
	}
}

// shutDown lets open requests end and waits until the servers that have not
// ended yet have.
func shutDown(ctx context.Context, running []*http.Server, pending int, ended <-chan error, logger *slog.Logger) error {
	stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
	defer cancel()
	var errs []error
	for _, server := range running {
		if err := server.Shutdown(stopCtx); err != nil {
			logger.Warn("open requests were cut off", "err", err)
			_ = server.Close()
		}
	}
	for range pending {
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			errs = append(errs, fmt.Errorf("serve: %w", err))
		}
	}
	return errors.Join(errs...)
}

// listeners are the open addresses; metrics is nil when there is no second one.
type listeners struct {
	main, metrics net.Listener
	// scheme of the main one: http or https.
	scheme string
}

// openListeners opens both addresses, or none.
func openListeners(c *config.Config) (l listeners, err error) {
	l.scheme = "http"
	if c.WebConfig != "" {
		if err := web.Validate(c.WebConfig); err != nil {
			return l, fmt.Errorf("%s: web_config %s: %w", c.At("web_config"), c.WebConfig, err)
		}
		if c.WebTLS {
			l.scheme = "https"
		}
	}
	if l.main, err = listen(c, "listen", c.Listen); err != nil || c.MetricsListen == "" {
		return l, err
	}
	if l.metrics, err = listen(c, "metrics_listen", c.MetricsListen); err != nil {
		return l, errors.Join(err, l.main.Close())
	}
	return l, nil
}

func listen(c *config.Config, key, address string) (net.Listener, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w; stop what listens there or choose another port", c.At(key), key, err)
	}
	return listener, nil
}

// serveMain serves with the users and the TLS of web_config, if there is one.
func serveMain(l net.Listener, server *http.Server, c *config.Config, logger *slog.Logger) error {
	return web.Serve(l, server, &web.FlagConfig{WebConfigFile: &c.WebConfig}, logger)
}
