package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"idemscope/internal/config"
	"idemscope/internal/doctor"
	"idemscope/internal/flow"
	"idemscope/internal/ledger"
	"idemscope/internal/lockstore"
)

// DoctorOptions describe one examination from the command line.
type DoctorOptions struct {
	// Config is the path of the configuration file. Mandatory.
	Config string
	// JSON prints the report as the API gives it.
	JSON bool
	// Language of the sentences.
	Language flow.Language
	// Out receives the report. Mandatory.
	Out io.Writer
}

// Doctor examines the set-up, prints the report, and returns the exit code: 0
// nothing critical, 1 something is, 3 something could not be told. Errors are
// usage or configuration: exit code 2.
func Doctor(ctx context.Context, o DoctorOptions) (exit int, err error) {
	c, s, err := openConfigured(o.Config)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	d, err := s.doctor(c)
	if err != nil {
		return 0, err
	}
	report := d.Examine(ctx)
	if o.JSON {
		return report.Exit(), printJSON(o.Out, report.JSON(o.Language))
	}
	return report.Exit(), report.WriteText(o.Out, o.Language)
}

// actingUsers opens the stores that have a second user once more, as that user, to
// ask what it may do.
func (s *stores) actingUsers(c *config.Config, o *doctor.Options) error {
	o.ActMySQL, o.ActRedis = map[string]*ledger.Server{}, map[string]*lockstore.Store{}
	for _, m := range c.MySQL {
		if m.Act.User == "" {
			continue
		}
		options := cleanupServer(c, m.Name)
		options.User, options.Password, options.MaxConns = m.Act.User, m.Act.Password.Reveal(), 1
		server, err := ledger.NewServer(options)
		if err != nil {
			return fmt.Errorf("%s: %w", c.At("mysql."+m.Name+".act"), err)
		}
		s.stops = append(s.stops, server.Close)
		o.ActMySQL[m.Name] = server
	}
	for _, r := range c.Redis {
		if r.Act.User == "" {
			continue
		}
		options := redisOptions(c, r)
		options.User, options.Password = r.Act.User, r.Act.Password.Reveal()
		store, err := lockstore.New(options)
		if err != nil {
			return fmt.Errorf("%s: %w", c.At("redis."+r.Name+".act"), err)
		}
		s.stops = append(s.stops, store.Close)
		o.ActRedis[r.Name] = store
	}
	return nil
}

// doctor sets up the examination of all stores.
func (s *stores) doctor(c *config.Config) (*doctor.Doctor, error) {
	o := doctor.Options{Flows: s.catalog.Flows(), Ledgers: s.ledgers, Redis: s.redis, Brokers: as[doctor.Broker](s.brokers)}
	if err := s.actingUsers(c, &o); err != nil {
		return nil, err
	}
	if c.Counters != nil {
		o.CountersSource = c.Counters.Redis
		o.Counters = func(ctx context.Context) (lockstore.Counters, error) {
			return s.redis[c.Counters.Redis].Counters(ctx, c.Counters.Prefix)
		}
	}
	o.Retention = func(ledger string) (keeps time.Duration, ok bool) {
		for _, t := range c.Cleanup.Tasks {
			if t.Ledger == ledger && (!ok || t.Retain < keeps) {
				keeps, ok = t.Retain, true
			}
		}
		return keeps, ok
	}
	return doctor.New(o)
}
