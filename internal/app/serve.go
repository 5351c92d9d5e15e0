package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/exporter-toolkit/web"

	"idemscope/console"
	"idemscope/exporter"
	"idemscope/internal/config"
	"idemscope/internal/ledger"
	"idemscope/internal/lockstore"
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
	// Started is called with the console's address as soon as it answers. May be nil.
	Started func(url string)
}

// Serve runs exporter and console until ctx ends, then stops them in reverse
// order. It returns nil after a stop that was asked for.
func Serve(ctx context.Context, o ServeOptions) (err error) {
	c, err := config.Load(o.Config)
	if err != nil {
		return err
	}
	s, err := openStores(c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	handler, metrics, err := rooms(c, s, o.Logger)
	if err != nil {
		return err
	}

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var loops sync.WaitGroup
	defer loops.Wait()
	loops.Go(func() { checkLedgers(ctx, s.ledgers, o.Logger) })
	loops.Go(func() {
		if err := metrics.Run(ctx); err != nil {
			o.Logger.Error("exporter stopped", "err", err)
		}
	})
	defer cancel()
	return listen(ctx, c, handler, o)
}

// rooms sets up the exporter and the console that shows its metrics.
func rooms(c *config.Config, s *stores, logger *slog.Logger) (http.Handler, *exporter.Exporter, error) {
	desk, err := s.desk(c)
	if err != nil {
		return nil, nil, err
	}
	options := exporter.Options{
		Flows: s.catalog.Flows(), Ledgers: s.ledgers, Brokers: as[exporter.Broker](s.brokers),
		Interval: c.Exporter.Interval, Lookback: c.Exporter.Lookback, MaxBizTypes: c.Exporter.MaxBizTypes,
		Version: Version, Logger: logger,
	}
	if c.Counters != nil {
		options.CountersSource = c.Counters.Redis
		options.Counters = func(ctx context.Context) (lockstore.Counters, error) {
			return s.redis[c.Counters.Redis].Counters(ctx, c.Counters.Prefix)
		}
	}
	metrics, err := exporter.New(options)
	if err != nil {
		return nil, nil, err
	}
	handler, err := console.New(console.Options{
		Desk: desk, Flows: s.catalog.Flows(), Metrics: metrics.Handler(),
		Language: string(c.Console.Language), Zone: c.TimeZone, Version: Version, Logger: logger,
	})
	return handler, metrics, err
}

// checkLedgers reports once, by name, what is wrong with each table. The rest
// keeps working, and a table that is mended is read without a restart.
func checkLedgers(ctx context.Context, ledgers map[string]*ledger.Ledger, logger *slog.Logger) {
	for name, l := range ledgers {
		checkCtx, cancel := context.WithTimeout(ctx, exporterTimeout)
		for _, p := range l.Check(checkCtx) {
			level := slog.LevelInfo
			if p.Severity == ledger.SeverityError {
				level = slog.LevelWarn
			}
			logger.Log(ctx, level, "ledger has a problem", "ledger", name, "code", p.Code, "problem", p.Text.EN)
		}
		cancel()
	}
}

// listen answers requests until ctx ends.
func listen(ctx context.Context, c *config.Config, handler http.Handler, o ServeOptions) error {
	if c.WebConfig != "" {
		if err := web.Validate(c.WebConfig); err != nil {
			return fmt.Errorf("%s: web_config %s: %w", c.At("web_config"), c.WebConfig, err)
		}
	}
	listener, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return fmt.Errorf("%s: listen: %w; stop what listens there or choose another port", c.At("listen"), err)
	}
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      time.Minute,
		IdleTimeout:       time.Minute,
		// An id of 10 kB is three times as long in a URL.
		MaxHeaderBytes: 64 << 10,
		ErrorLog:       slog.NewLogLogger(o.Logger.Handler(), slog.LevelWarn),
	}
	served := make(chan error, 1)
	go func() {
		served <- web.Serve(listener, server, &web.FlagConfig{WebConfigFile: &c.WebConfig}, o.Logger)
	}()
	o.Logger.Info("console and metrics are up", "address", listener.Addr().String())
	if o.Started != nil {
		o.Started("http://" + listener.Addr().String())
	}
	select {
	case err := <-served:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
	defer cancel()
	if err := server.Shutdown(stopCtx); err != nil {
		o.Logger.Warn("open requests were cut off", "err", err)
		_ = server.Close()
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}
