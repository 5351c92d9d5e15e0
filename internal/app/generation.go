package app

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"idemscope/console"
	"idemscope/exporter"
	"idemscope/internal/access"
	"idemscope/internal/action"
	"idemscope/internal/config"
	"idemscope/internal/ledger"
	"idemscope/internal/lockstore"
	"idemscope/janitor"
)

// generation is everything that one configuration sets up. A reload starts the
// next one beside it, and only then ends it.
type generation struct {
	config *config.Config
	stores *stores
	// events follows the taps, and arms traces.
	events *events
	// cleanup shows the janitor, which is hired last: its metrics outlive a
	// configuration, and one that is refused must not touch them.
	cleanup cleanupDesk
	// console answers everything; metrics only /metrics.
	console, metrics http.Handler
	// guard says who may do what.
	guard *access.Guard
	stop  context.CancelFunc
	loops sync.WaitGroup
	// requests are those that are being answered from this generation.
	requests sync.WaitGroup
}

// newGeneration sets up all parts and starts the loops. process holds the
// metrics that outlive a configuration, among them those of the janitor; memory
// is what outlives one of those who sign in.
func newGeneration(c *config.Config, process prometheus.Gatherer, cleaned *janitor.Metrics, memory *access.Memory, logger *slog.Logger) (*generation, error) {
	s, err := openStores(c)
	if err != nil {
		return nil, err
	}
	g := &generation{config: c, stores: s}
	if g.events, err = newEvents(c, s, logger); err != nil {
		_ = s.close()
		return nil, err
	}
	if g.guard, err = newGuard(c, memory, s.audit, logger); err != nil {
		_ = s.close()
		return nil, err
	}
	followTrail := s.followTrail(c, logger)
	exported, err := g.rooms(process, logger)
	if err != nil {
		_ = s.close()
		return nil, err
	}
	cleaner, err := janitor.New(janitor.Options{Tasks: s.tasks, Metrics: cleaned, Logger: logger, History: cleanupHistory(c)})
	if err != nil {
		_ = s.close()
		return nil, err
	}
	g.cleanup.Janitor = cleaner
	ctx, cancel := context.WithCancel(context.Background())
	g.stop = cancel
	g.loops.Go(func() { checkLedgers(ctx, s.ledgers, logger) })
	g.loops.Go(func() { cleaner.Run(ctx) })
	g.loops.Go(func() { g.events.run(ctx) })
	g.loops.Go(func() { followTrail(ctx) })
	g.loops.Go(func() {
		if err := exported.Run(ctx); err != nil {
			logger.Error("exporter stopped", "err", err)
		}
	})
	return g, nil
}

// rooms sets up the exporter and the console that shows its metrics.
func (g *generation) rooms(process prometheus.Gatherer, logger *slog.Logger) (*exporter.Exporter, error) {
	c, s := g.config, g.stores
	desk, err := s.desk(c)
	if err != nil {
		return nil, err
	}
	options := exporter.Options{
		Flows: s.catalog.Flows(), Ledgers: s.ledgers, Brokers: as[exporter.Broker](s.brokers),
		Interval: c.Exporter.Interval, Lookback: c.Exporter.Lookback, MaxBizTypes: c.Exporter.MaxBizTypes,
		Judge: desk.Answer, FindingsPerSecond: c.Exporter.Findings.PerSecond,
		Redis: s.redis, SweepKeysPerSecond: c.Exporter.Sweep.KeysPerSecond, SweepPause: c.Exporter.Sweep.Pause,
		LockExpirations: c.Exporter.LockExpirations,
		Version:         Version, Logger: logger,
	}
	if c.Counters != nil {
		options.CountersSource = c.Counters.Redis
		options.Counters = func(ctx context.Context) (lockstore.Counters, error) {
			return s.redis[c.Counters.Redis].Counters(ctx, c.Counters.Prefix)
		}
	}
	actor, err := s.actor(c, desk, logger)
	if err != nil {
		return nil, err
	}
	examiner, err := s.doctor(c)
	if err != nil {
		return nil, err
	}
	options.Doctor = examiner.Examine
	exported, err := exporter.New(options)
	if err != nil {
		return nil, err
	}
	g.metrics = exported.Handler(process, g.events.registry)
	g.console, err = console.New(console.Options{
		Desk: desk, Flows: s.catalog.Flows(), Metrics: g.metrics, Findings: listFindings(c, exported),
		Traces: g.events.tracing(), Actions: c.Console.Actions,
		Figures: exported.Figures, Grafana: c.Console.Grafana, Cleanup: g.cleanup.offered(len(s.tasks)),
		Doctor: examiner,
		Guard:  g.guard, Environment: c.Console.Environment,
		Actor: consoleActor(actor), Audit: s.audit,
		Language: string(c.Console.Language), Zone: c.TimeZone, Version: Version, Logger: logger,
	})
	return exported, err
}

// consoleActor is nil for the console when actions are off.
func consoleActor(a *action.Actor) console.Actor {
	if a == nil {
		return nil
	}
	return a
}

// close stops the loops, lets open requests end, and closes the stores.
func (g *generation) close() error {
	g.stop()
	g.loops.Wait()
	g.requests.Wait()
	g.guard.Close()
	if err := g.stores.close(); err != nil {
		return fmt.Errorf("close stores: %w", err)
	}
	return nil
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
